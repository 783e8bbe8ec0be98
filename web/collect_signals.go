package web

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// The kernel's counters, by the names of the package signals.
var descCounters = map[string]*prometheus.Desc{
	"TcpExt.ListenOverflows":   describe("listen_overflows_total", "Connections that met a full listen queue, on this host."),
	"TcpExt.ListenDrops":       describe("listen_drops_total", "Connections that listening sockets dropped, on this host."),
	"TcpExt.SyncookiesSent":    describe("syn_cookies_total", "SYN cookies sent because the SYN backlog was full, on this host."),
	"TcpExt.TCPReqQFullDrop":   describe("syn_drops_total", "SYNs dropped because the SYN backlog was full, on this host."),
	"TcpExt.TCPSynRetrans":     describe("syn_retransmits_total", "SYNs that had to be repeated, on this host."),
	"TcpExt.TCPAbortOnTimeout": describe("connection_timeouts_total", "TCP connections given up after timeouts, on this host."),
	"TcpExt.TCPTimeouts":       describe("tcp_timeouts_total", "Timeouts of TCP, on this host."),
	"Tcp.AttemptFails":         describe("connect_failures_total", "TCP connects that failed, on this host."),
}

var (
	descExhaustion = describe("worker_fds_exhaustion_seconds", "Time until a worker reaches its limit of file descriptors if it goes on like this; absent if not foreseeable.", "proxy", "worker")
	descQueue      = describe("worker_listen_queue_ratio", "How full a worker's fullest listen queue is, 0 to 1; 0 under a quarter.", "proxy", "worker")
	descRestarts   = describe("worker_restarts_total", "Workers whose process was replaced, whoever did it.", "proxy")
)

func (c *collector) collectSignals(ch chan<- prometheus.Metric) {
	s := c.src.Signals()
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		if d := descCounters[name]; d != nil {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(s.Counters[name]))
		}
	}
	left, queue := map[series]float64{}, map[series]float64{}
	for _, w := range s.Workers {
		k := series{c.m.proxies.label(w.Proxy), workerLabel(w.Index)}
		queue[k] = max(queue[k], w.QueueShare)
		if old, ok := left[k]; w.ExhaustionSeconds > 0 && (!ok || w.ExhaustionSeconds < old) {
			left[k] = w.ExhaustionSeconds
		}
	}
	send(ch, descExhaustion, prometheus.GaugeValue, left)
	send(ch, descQueue, prometheus.GaugeValue, queue)
	restarts := map[string]float64{}
	for proxy, n := range s.Restarts {
		restarts[c.m.proxies.label(proxy)] += float64(n)
	}
	for proxy, n := range restarts {
		ch <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, n, proxy)
	}
}
