package web

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spinguard/spinguard/web/api"
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

var (
	descBackends = describe("backend_restarts_total", "Processes on this host that workers connect to and that were started anew.", "upstream")
	descCounting = describe("connects_counted", "1 while the connects of workers are counted by peer.")
)

// What is counted of connects by peer, whose address is the label upstream.
var descConnects = []struct {
	desc *prometheus.Desc
	of   func(api.PeerConnects) uint64
}{
	{describeConnects("connects_total", "TCP connects begun"), func(p api.PeerConnects) uint64 { return p.Begun }},
	{describeConnects("connects_refused_total", "TCP connects refused"), func(p api.PeerConnects) uint64 { return p.Refused }},
	{describeConnects("connects_timed_out_total", "TCP connects without an answer"), func(p api.PeerConnects) uint64 { return p.TimedOut }},
	{describeConnects("connects_unreachable_total", "TCP connects that failed otherwise"), func(p api.PeerConnects) uint64 { return p.Unreachable }},
	{describeConnects("connects_given_up_total", "TCP connects that the proxy gave up before there was an answer"), func(p api.PeerConnects) uint64 { return p.GivenUp }},
	{describeConnects("connections_closed_total", "TCP connections closed"), func(p api.PeerConnects) uint64 { return p.Closed }},
	{describeConnects("connections_reset_total", "TCP connections reset by the peer"), func(p api.PeerConnects) uint64 { return p.Reset }},
	{describeConnects("connections_lost_total", "TCP connections whose peer did not answer any more"), func(p api.PeerConnects) uint64 { return p.Lost }},
}

func describeConnects(name, what string) *prometheus.Desc {
	return describe(name, what+", by peer, while they were counted.", "proxy", "upstream")
}

func (c *collector) collectConnects(ch chan<- prometheus.Metric, s api.Signals) {
	for _, d := range descConnects {
		sums := map[series]float64{}
		for _, p := range s.Connects {
			peer := other
			if p.Peer != "" {
				peer = c.m.peers.label(p.Peer)
			}
			sums[series{c.m.proxies.label(p.Proxy), peer}] += float64(d.of(p))
		}
		send(ch, d.desc, prometheus.CounterValue, sums)
	}
	restarts := map[string]float64{}
	for address, n := range s.Backends {
		restarts[c.m.peers.label(address)] += float64(n)
	}
	for address, n := range restarts {
		ch <- prometheus.MustNewConstMetric(descBackends, prometheus.CounterValue, n, address)
	}
	if s.Backends != nil { // else the host was not looked at yet
		ch <- prometheus.MustNewConstMetric(descCounting, prometheus.GaugeValue, truth(s.Counting != ""))
	}
}

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
	c.collectConnects(ch, s)
	restarts := map[string]float64{}
	for proxy, n := range s.Restarts {
		restarts[c.m.proxies.label(proxy)] += float64(n)
	}
	for proxy, n := range restarts {
		ch <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, n, proxy)
	}
}
