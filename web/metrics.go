package web

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Bounds of the label values; what is over them is counted as "other".
const (
	maxProxies   = 32
	maxWorkers   = 128 // per proxy
	maxUpstreams = 64
	maxReasons   = 16
	other        = "other"
)

// Metrics are the agent's metrics, in a registry of their own. What happens is
// counted through its methods, which any goroutine may call; what merely is,
// is read from the Source at each scrape.
type Metrics struct {
	registry  *prometheus.Registry
	stalls    *prometheus.HistogramVec
	incidents *prometheus.CounterVec
	last      *prometheus.GaugeVec
	evictions *prometheus.CounterVec
	refused   *prometheus.CounterVec
	cuts      *prometheus.CounterVec
	requests  *prometheus.CounterVec
	upstreams *bounded

	src     Source
	proxies *bounded
	peers   *bounded // addresses
	mu      sync.Mutex
	ended   map[string]float64 // seconds of stalls that are over, by proxy
}

// NewMetrics returns metrics of an agent of this version, reading the state of
// things from src.
func NewMetrics(version string, src Source) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "spinguard_" + name, Help: help}, labels)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		stalls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "spinguard_stall_seconds", Help: "Length of stalls of the event loop that have ended, from the suspect threshold on.",
			Buckets: []float64{0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300},
		}, []string{"proxy"}),
		incidents: counter("incidents_total", "Incidents by the verdict that opened them.", "proxy", "verdict"),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "spinguard_incident_last_timestamp_seconds", Help: "When the last incident began, in seconds since 1970; 0 if there was none.",
		}, []string{"proxy"}),
		evictions: counter("evictions_total", "Workers killed so that their master starts a fresh one.", "proxy"),
		refused:   counter("actions_refused_total", "Actions that a rail forbade.", "proxy"),
		cuts:      counter("quarantines_total", "Quarantines made, by the agent or by hand.", "proxy"),
		requests:  counter("request_cpu_seconds_total", "CPU time of requests by upstream, estimated from samples.", "proxy", "upstream"),
		upstreams: newBounded(maxUpstreams),
		src:       src,
		proxies:   newBounded(maxProxies),
		peers:     newBounded(maxUpstreams),
		ended:     map[string]float64{},
	}
	m.registry.MustRegister(m.stalls, m.incidents, m.last, m.evictions, m.refused, m.cuts, m.requests, newCollector(m, src), buildInfo(version))
	return m
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "spinguard_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// Handler serves the metrics in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	gather := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		m.prepare() // before: the registry asks all collectors at once
		return m.registry.Gather()
	})
	return promhttp.HandlerFor(gather, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// ObserveStall counts a stall that has ended, whatever ended it.
func (m *Metrics) ObserveStall(proxy string, d time.Duration) {
	p := m.proxies.label(proxy)
	m.stalls.WithLabelValues(p).Observe(d.Seconds())
	m.mu.Lock()
	m.ended[p] += d.Seconds()
	m.mu.Unlock()
}

// IncIncident counts an incident when it opens.
func (m *Metrics) IncIncident(proxy, verdict string, began time.Time) {
	p := m.proxies.label(proxy)
	m.incidents.WithLabelValues(p, verdictLabel(verdict)).Inc()
	m.last.WithLabelValues(p).Set(float64(began.UnixMilli()) / 1000)
}

// IncEviction counts an evicted worker.
func (m *Metrics) IncEviction(proxy string) {
	m.evictions.WithLabelValues(m.proxies.label(proxy)).Inc()
}

// IncRefused counts an action that a rail forbade.
func (m *Metrics) IncRefused(proxy string) { m.refused.WithLabelValues(m.proxies.label(proxy)).Inc() }

// IncQuarantine counts a quarantine when it is made.
func (m *Metrics) IncQuarantine(proxy string) { m.cuts.WithLabelValues(m.proxies.label(proxy)).Inc() }

// AddRequestCPU counts CPU time that a request used.
func (m *Metrics) AddRequestCPU(proxy, upstream string, d time.Duration) {
	m.requests.WithLabelValues(m.proxies.label(proxy), m.upstreams.label(upstream)).Add(max(d, 0).Seconds())
}

// prepare makes the counters of every proxy exist, so that their first step
// from 0 to 1 is seen.
func (m *Metrics) prepare() {
	for _, p := range m.src.Status().Proxies {
		m.prepareProxy(m.proxies.label(p.Name))
	}
	for _, w := range m.src.Workers() {
		m.prepareProxy(m.proxies.label(w.Proxy))
	}
}

func (m *Metrics) prepareProxy(p string) {
	m.stalls.WithLabelValues(p)
	m.last.WithLabelValues(p)
	m.evictions.WithLabelValues(p)
	m.refused.WithLabelValues(p)
	m.cuts.WithLabelValues(p)
	for _, v := range verdicts {
		if v != "healthy" && v != "suspect" {
			m.incidents.WithLabelValues(p, v)
		}
	}
}
