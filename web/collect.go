package web

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spinguard/spinguard/web/api"
)

// collector reads the state of things at each scrape.
type collector struct {
	m         *Metrics
	src       Source
	born      time.Time
	upstreams *bounded
	reasons   *bounded

	mu      sync.Mutex
	cpuSeen map[process]float64
	cpu     map[series]float64 // seconds, over all processes that were this worker
	stalled map[string]float64 // the highest value sent, by proxy
}

// process tells a worker from another one that got its pid.
type process struct {
	pid   int
	start int64
}

// series is one time series with one or two labels.
type series struct{ proxy, other string }

// descs are the metrics that are read, not counted.
var descs = map[string]*prometheus.Desc{}

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("spinguard_"+name, help, labels, nil)
	descs[name] = d
	return d
}

var (
	descWorkers     = describe("workers", "Workers by the judge's verdict.", "proxy", "verdict")
	descCPU         = describe("worker_cpu_seconds_total", "CPU time of a worker and those it replaced, since the agent saw them.", "proxy", "worker")
	descStall       = describe("worker_stall_seconds", "Time since the last progress of a worker's event loop.", "proxy", "worker")
	descStalled     = describe("stalled_seconds_total", "Time that workers spent in stalls, running ones included.", "proxy")
	descOpenFDs     = describe("worker_open_fds", "Open file descriptors of a worker.", "proxy", "worker")
	descMaxFDs      = describe("worker_max_fds", "Soft limit of the file descriptors of a worker.", "proxy", "worker")
	descQuarantines = describe("quarantines", "Quarantines in force.", "proxy", "upstream")
	descSamples     = describe("samples_total", "Samples taken.")
	descLost        = describe("samples_lost_total", "Samples lost, by reason.", "reason")
	descSampler     = describe("sampler_up", "1 if the sampler works, 0 if the agent is blind.")
	descSelfTest    = describe("self_test_failed", "1 if the self-test at start found that stacks on this kernel are not whole.")
	descEnforce     = describe("enforcing", "1 in mode enforce, 0 in mode observe.")
	descKept        = describe("incidents_kept", "Incidents on disk.")
	descAgentCPU    = describe("agent_cpu_seconds_total", "CPU time of the agent.")
	descAgentRSS    = describe("agent_resident_memory_bytes", "Resident memory of the agent.")
	descAgentStart  = describe("agent_start_time_seconds", "When the agent started, in seconds since 1970.")
)

func newCollector(m *Metrics, src Source) *collector {
	return &collector{
		m: m, src: src, born: time.Now(), upstreams: newBounded(maxUpstreams), reasons: newBounded(maxReasons),
		cpuSeen: map[process]float64{}, cpu: map[series]float64{}, stalled: map[string]float64{},
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, name := range slices.Sorted(maps.Keys(descs)) {
		ch <- descs[name]
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	workers, status := c.src.Workers(), c.src.Status()
	c.collectWorkers(ch, workers)
	c.collectQuarantines(ch)
	c.collectSignals(ch)
	c.collectAgent(ch, status)
}

func (c *collector) collectAgent(ch chan<- prometheus.Metric, s api.Status) {
	one := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	cpu, rss := Usage()
	one(descAgentCPU, prometheus.CounterValue, cpu)
	one(descAgentRSS, prometheus.GaugeValue, float64(rss))
	one(descAgentStart, prometheus.GaugeValue, float64(c.born.UnixMilli())/1000)
	one(descSamples, prometheus.CounterValue, float64(s.Samples))
	one(descSampler, prometheus.GaugeValue, truth(s.Sampler == "" || s.Sampler == "ok"))
	one(descSelfTest, prometheus.GaugeValue, truth(s.SelfTestFailed))
	one(descEnforce, prometheus.GaugeValue, truth(s.Mode == "enforce"))
	one(descKept, prometheus.GaugeValue, float64(s.Incidents))
	lost := map[string]float64{}
	for _, reason := range slices.Sorted(maps.Keys(s.Lost)) {
		lost[c.reasons.label(reason)] += float64(s.Lost[reason])
	}
	for reason, n := range lost {
		ch <- prometheus.MustNewConstMetric(descLost, prometheus.CounterValue, n, reason)
	}
}

func (c *collector) collectQuarantines(ch chan<- prometheus.Metric) {
	n := map[series]float64{}
	for _, q := range c.src.Quarantines() {
		n[series{c.m.proxies.label(q.Proxy), c.upstreams.label(q.Upstream)}]++
	}
	send(ch, descQuarantines, prometheus.GaugeValue, n)
}

func send(ch chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, values map[series]float64) {
	for s, v := range values {
		ch <- prometheus.MustNewConstMetric(d, kind, v, s.proxy, s.other)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
