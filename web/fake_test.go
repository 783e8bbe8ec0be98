package web

import (
	"fmt"
	"sync"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fakeSource is a Source with two workers, one of them stuck.
type fakeSource struct {
	mu      sync.Mutex
	workers []api.WorkerStatus
	cuts    []api.Quarantine
	lifted  []string
	status  api.Status
}

func newFake() *fakeSource {
	return &fakeSource{
		workers: []api.WorkerStatus{
			{Proxy: "nginx-main", Kind: "openresty", PID: 4710, Index: 1, CPUShare: 0.31, CPUSeconds: 12.5, StallMS: 1.2, Verdict: "healthy", Started: noon.Add(-time.Hour), AgeSeconds: 3600},
			{Proxy: "nginx-main", Kind: "openresty", PID: 4711, Index: 2, CPUShare: 0.99, CPUSeconds: 80, StallMS: 412, Verdict: "runaway", Reason: "412 ms of CPU without progress while a picker runs",
				Request: "GET /shop/cart/17", Upstream: "shop", Version: "2", Incident: "20261130T015749.123Z-0badc0", Started: noon.Add(-time.Hour), AgeSeconds: 3600},
		},
		cuts: []api.Quarantine{{ID: "q1", Proxy: "nginx-main", Upstream: "shop", Version: "2", Since: noon, Until: noon.Add(30 * time.Second),
			By: "agent", Reason: "runaway in gcd (wrr.lua:12)", Incident: "20261130T015749.123Z-0badc0", Strikes: 1}},
		status: api.Status{Version: "0.1.0", Node: "lb-7", Mode: "enforce", UptimeSeconds: 4000, CPUSeconds: 3.1, ResidentBytes: 21e6,
			Samples: 48000, Lost: map[string]int64{"ring full": 2}, Sampler: "ok", Incidents: 1, Proxies: []api.Proxy{{Name: "nginx-main", Kind: "openresty", Master: 4700, Workers: 2}}},
	}
}

func (f *fakeSource) Status() api.Status { return f.status }

func (f *fakeSource) Glance() []api.WorkerStatus { return f.Workers() }

func (f *fakeSource) Workers() []api.WorkerStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.workers
}

func (f *fakeSource) Quarantines() []api.Quarantine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cuts
}

func (f *fakeSource) Add(q api.QuarantineRequest) (api.Quarantine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	made := api.Quarantine{ID: fmt.Sprintf("q%d", len(f.cuts)+1), Proxy: q.Proxy, Upstream: q.Upstream, Version: q.Version, Peer: q.Peer, Reason: q.Reason, By: "operator", Since: noon, Until: noon.Add(time.Minute)}
	f.cuts = append(f.cuts, made)
	return made, nil
}

func (f *fakeSource) Lift(id, reason string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, q := range f.cuts {
		if q.ID == id {
			f.cuts = append(f.cuts[:i:i], f.cuts[i+1:]...)
			f.lifted = append(f.lifted, id+": "+reason)
			return nil
		}
	}
	return fmt.Errorf("%w: quarantine %.40q", ErrNotFound, id)
}

func (f *fakeSource) Classes() []api.Class {
	return []api.Class{{Proxy: "nginx-main", Upstream: "shop", Route: "GET /shop/cart/*", Phase: "access", CPUSeconds: 1.5, Samples: 75}}
}

func (f *fakeSource) Signals() api.Signals {
	return api.Signals{
		Recent: []api.Signal{{At: noon, Kind: "files", Proxy: "nginx-main", Text: "worker 1 runs out of files"}},
		Counters: map[string]uint64{"TcpExt.ListenOverflows": 3, "TcpExt.ListenDrops": 4, "Tcp.AttemptFails": 5, "TcpExt.SyncookiesSent": 6,
			"TcpExt.TCPReqQFullDrop": 7, "TcpExt.TCPSynRetrans": 8, "TcpExt.TCPAbortOnTimeout": 9, "TcpExt.TCPTimeouts": 10},
		Restarts: map[string]uint64{"nginx-main": 2},
		Workers:  []api.WorkerSignals{{Proxy: "nginx-main", Index: 1, PID: 1, OpenFiles: 900, FilesLimit: 1024, ExhaustionSeconds: 90, QueueShare: 0.5}},
	}
}

func (f *fakeSource) Settings() any {
	return map[string]any{"mode": "enforce", "thresholds": map[string]string{"runaway": "300ms"}}
}

// an incident like the one that the fake worker is in.
func testIncident() *incident.Incident {
	ms := func(n int64) *int64 { return &n }
	began := time.Date(2026, 11, 30, 1, 57, 49, 123e6, time.UTC)
	end := began.Add(613 * time.Millisecond)
	return &incident.Incident{
		ID: "20261130T015749.123Z-0badc0", Origin: "lb-7", Proxy: "nginx-main", Kind: "openresty", Worker: incident.Worker{Index: 2, PID: 4711},
		Mode: "enforce", Verdict: "runaway", Reason: "304 ms of CPU without progress", Outcome: incident.Recovered, Began: began, Ended: &end,
		Timeline: incident.Timeline{Suspected: ms(0), Confirmed: ms(204), Captured: ms(221), Quarantined: ms(402), Evicted: ms(431), Recovered: ms(613)},
		Evidence: incident.Evidence{Request: "GET /shop/cart/17", Upstream: "shop", Version: "2", Phase: "pick", Frames: []string{"gcd (wrr.lua:12)"}},
	}
}
