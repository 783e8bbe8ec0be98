package web

import "github.com/prometheus/client_golang/prometheus"

// Spool says what waits for one receiver of events or profiles.
type Spool struct {
	Receiver                           string // one of a few fixed names
	Waiting, Unsaved                   int    // items; of those, in memory only
	Bytes                              int64
	Queued, Delivered, Failed, Dropped uint64 // Failed: attempts; Dropped: items given up
}

// The metrics of spools are registered once there is one.
var (
	descSpoolItems     = prometheus.NewDesc("spinguard_spool_items", "Events or profiles that wait for a receiver.", []string{"receiver"}, nil)
	descSpoolUnsaved   = prometheus.NewDesc("spinguard_spool_unsaved_items", "Of those, the ones in memory only, because the disk took nothing.", []string{"receiver"}, nil)
	descSpoolBytes     = prometheus.NewDesc("spinguard_spool_bytes", "Size of what waits for a receiver.", []string{"receiver"}, nil)
	descSpoolQueued    = prometheus.NewDesc("spinguard_spool_queued_total", "Events or profiles that were to reach a receiver.", []string{"receiver"}, nil)
	descSpoolDelivered = prometheus.NewDesc("spinguard_spool_delivered_total", "Those that a receiver has.", []string{"receiver"}, nil)
	descSpoolDropped   = prometheus.NewDesc("spinguard_spool_dropped_total", "Those that were given up: refused for good, or over the bounds.", []string{"receiver"}, nil)
	descSpoolFailures  = prometheus.NewDesc("spinguard_spool_failures_total", "Attempts that failed; what failed is tried again.", []string{"receiver"}, nil)
)

// spoolCollector reads the spools at each scrape.
type spoolCollector func() []Spool

// WatchSpools adds metrics of the spools that list returns. Call it once, with
// a function that any goroutine may call.
func (m *Metrics) WatchSpools(list func() []Spool) { m.registry.MustRegister(spoolCollector(list)) }

// Describe implements prometheus.Collector.
func (c spoolCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSpoolItems, descSpoolUnsaved, descSpoolBytes, descSpoolQueued, descSpoolDelivered, descSpoolDropped, descSpoolFailures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c spoolCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c() {
		one := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, s.Receiver)
		}
		one(descSpoolItems, prometheus.GaugeValue, float64(s.Waiting))
		one(descSpoolUnsaved, prometheus.GaugeValue, float64(s.Unsaved))
		one(descSpoolBytes, prometheus.GaugeValue, float64(s.Bytes))
		one(descSpoolQueued, prometheus.CounterValue, float64(s.Queued))
		one(descSpoolDelivered, prometheus.CounterValue, float64(s.Delivered))
		one(descSpoolDropped, prometheus.CounterValue, float64(s.Dropped))
		one(descSpoolFailures, prometheus.CounterValue, float64(s.Failed))
	}
}
