package web

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spinguard/spinguard/web/api"
)

func (c *collector) collectWorkers(ch chan<- prometheus.Metric, workers []api.WorkerStatus) {
	by, stall, open, limit := map[series]float64{}, map[series]float64{}, map[series]float64{}, map[series]float64{}
	running := map[string]float64{}
	for _, w := range workers {
		p := c.m.proxies.label(w.Proxy)
		for _, v := range verdicts {
			by[series{p, v}] += 0
		}
		by[series{p, verdictLabel(w.Verdict)}]++
		k := series{p, workerLabel(w.Index)}
		stall[k] = max(stall[k], w.StallMS/1000)
		if n, most, err := descriptors(w.PID); err == nil { // else it has just ended
			open[k], limit[k] = max(open[k], n), max(limit[k], most)
		}
		running[p] += 0
		if w.Verdict != "healthy" && w.Verdict != "saturated" {
			running[p] += w.StallMS / 1000
		}
	}
	send(ch, descWorkers, prometheus.GaugeValue, by)
	send(ch, descStall, prometheus.GaugeValue, stall)
	send(ch, descOpenFDs, prometheus.GaugeValue, open)
	send(ch, descMaxFDs, prometheus.GaugeValue, limit)
	send(ch, descCPU, prometheus.CounterValue, c.addCPU(workers))
	for p, v := range c.addStalled(running) {
		ch <- prometheus.MustNewConstMetric(descStalled, prometheus.CounterValue, v, p)
	}
}

// addCPU adds what every process used since the last scrape to the counter of
// its worker. So a respawn is no reset, and two processes that share an index
// during a reload are no fall.
func (c *collector) addCPU(workers []api.WorkerStatus) map[series]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := make(map[process]float64, len(workers))
	for _, w := range workers {
		p := process{w.PID, w.Started.UnixNano()}
		before, known := c.cpuSeen[p]
		if !known && w.Started.Before(c.born) {
			before = w.CPUSeconds // used before anybody looked
		}
		k := series{c.m.proxies.label(w.Proxy), workerLabel(w.Index)}
		c.cpu[k] += max(w.CPUSeconds-before, 0)
		seen[p] = w.CPUSeconds
	}
	c.cpuSeen = seen
	out := make(map[series]float64, len(c.cpu))
	for k, v := range c.cpu {
		out[k] = v
	}
	return out
}

// addStalled returns the ended stalls plus the running ones. A counter must not
// fall, also when a running stall ends unseen.
func (c *collector) addStalled(running map[string]float64) map[string]float64 {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]float64{}
	for p, v := range c.m.ended {
		out[p] = v
	}
	for p, v := range running {
		out[p] += v
	}
	for p, v := range out {
		out[p] = max(v, c.stalled[p])
		c.stalled[p] = out[p]
	}
	return out
}
