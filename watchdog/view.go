package watchdog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/watchdog/judge"
	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
)

// view is what pages, commands and metrics see: a copy that the loop publishes
// and never changes.
type view struct {
	workers     []api.WorkerStatus
	quarantines []api.Quarantine
	classes     []api.Class
	signals     api.Signals
	proxies     []api.Proxy
	samples     uint64
	lost        map[string]int64
	incidents   int
}

// The view is made anew this often: while somebody reads it or a worker is in
// doubt, and else.
const (
	viewEvery    = 50 * time.Millisecond
	idleView     = 2 * time.Second
	viewReadsFor = 3 * time.Second
	// What the kernel must be asked for is not asked so often if nobody reads it.
	countersEvery = 5 * time.Second
)

// read is the view for who shows it to somebody.
func (a *Agent) read() *view {
	a.readAt.Store(int64(a.clock.mono()))
	return a.view.Load()
}

// publish replaces the view.
func (a *Agent) publish() {
	now := a.clock.mono()
	if old := a.view.Load(); old != nil {
		wanted := a.outdated || len(old.workers) != len(a.workers) || a.suspects() || len(a.episodes) > 0 ||
			now-time.Duration(a.readAt.Load()) < viewReadsFor
		if now-a.lastTick < choose(wanted, viewEvery, idleView) {
			return
		}
	}
	a.lastTick, a.outdated = now, false
	v := &view{workers: []api.WorkerStatus{}, quarantines: []api.Quarantine{}, proxies: []api.Proxy{}, lost: map[string]int64{}}
	for _, w := range a.workers {
		v.workers = append(v.workers, w.status(a.clock.wall()))
	}
	slices.SortFunc(v.workers, func(x, y api.WorkerStatus) int {
		return cmp.Or(cmp.Compare(x.Proxy, y.Proxy), cmp.Compare(x.Index, y.Index), cmp.Compare(x.PID, y.PID))
	})
	for _, in := range a.instances {
		v.proxies = append(v.proxies, api.Proxy{Name: in.Name, Kind: string(in.Kind), Master: in.Master, Workers: len(in.Workers), Note: in.note})
		for _, entry := range in.quarantines(a.clock.wall(), now, a.log) {
			v.quarantines = append(v.quarantines, quarantineView(in, entry))
		}
	}
	v.quarantines = append(v.quarantines, a.holdViews()...)
	slices.SortFunc(v.proxies, func(x, y api.Proxy) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Master, y.Master))
	})
	slices.SortFunc(v.quarantines, func(x, y api.Quarantine) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID)) })
	v.classes, v.signals = a.classViews(), a.signalView(v.workers)
	a.countSamples(v)
	v.incidents = a.countIncidents(now)
	a.view.Store(v)
}

// countIncidents counts the folders on disk, every few seconds.
func (a *Agent) countIncidents(now time.Duration) int {
	if a.store != nil && (a.countedAt == 0 || now-a.countedAt > 5*time.Second) {
		a.countedAt = now
		a.onDisk, _ = a.store.Count() // a store that can't be read is told when something is written
	}
	return a.onDisk
}

func (a *Agent) countSamples(v *view) {
	if a.sampler == nil {
		return
	}
	if now := a.clock.mono(); now-a.countersAt >= choose(now-time.Duration(a.readAt.Load()) < viewReadsFor, viewEvery, countersEvery) {
		a.countersAt = now
		a.readCounters()
	}
	v.samples = a.counters.Taken
	// Also those of 0: a counter that appears with its first loss shows no step.
	for reason, n := range map[string]uint64{"ring full": a.counters.LostRing, "unreadable record": a.unreadable} {
		v.lost[reason] = int64(n)
	}
}

func (w *worker) status(now time.Time) api.WorkerStatus {
	s := api.WorkerStatus{
		Proxy: w.in.Name, Kind: string(w.Kind), PID: w.PID, Index: w.Index + 1, CPUShare: w.share,
		CPUSeconds: w.look.CPUTime.Seconds(), StallMS: float64(w.decision.Stall.Microseconds()) / 1000,
		Verdict: string(w.judge.Verdict()), Reason: w.decision.Reason,
		Started: w.since, AgeSeconds: now.Sub(w.since).Seconds(), Young: w.starting(),
	}
	if w.decision.Verdict != judge.Healthy && w.hasReq {
		s.Request, s.Upstream = w.request.Line(false), w.request.Upstream.Name
	}
	if w.crumb.Active {
		s.Upstream, s.Version = w.crumb.Upstream, strconv.FormatUint(w.crumb.Version, 10)
	}
	if w.episode != nil {
		s.Incident = w.episode.inc.ID
	}
	return s
}

func quarantineView(in *instance, e balancer.Entry) api.Quarantine {
	q := api.Quarantine{ID: e.ID, Proxy: in.Name, Upstream: e.Upstream, Since: e.Since, Until: e.Until, By: "agent", Reason: e.Reason, Origin: e.Origin}
	switch e.Kind {
	case balancer.KindVersion:
		q.Version = strconv.FormatUint(e.Version, 10)
	case balancer.KindPeer:
		q.Peer = e.Subject
	case balancer.KindRoute:
		q.Route = e.Subject
	}
	return q
}

// Status implements web.Source.
func (a *Agent) Status() api.Status {
	v := a.read()
	now := time.Now()
	test, failed := "not done yet", false
	if report := a.tested.Load(); report != nil {
		test, failed = report.String(), !report.OK()
	}
	return api.Status{
		SelfTest: test, SelfTestFailed: failed,
		Version: a.version, Node: a.settings.Load().Node, Mode: string(a.settings.Load().Mode), Started: a.started, UptimeSeconds: now.Sub(a.started).Seconds(),
		CPUSeconds: ownCPU().Seconds(), ResidentBytes: ownMemory(), Samples: v.samples, Lost: v.lost, Sampler: a.samplerState(),
		Incidents: v.incidents, Proxies: v.proxies,
	}
}

// Workers implements web.Source.
func (a *Agent) Workers() []api.WorkerStatus { return a.read().workers }

// Glance implements web.Source. The view is not made anew more often for it.
func (a *Agent) Glance() []api.WorkerStatus { return a.view.Load().workers }

// Quarantines implements web.Source.
func (a *Agent) Quarantines() []api.Quarantine { return a.read().quarantines }

// Settings implements web.Source.
func (a *Agent) Settings() any { return *a.settings.Load() }

// Metrics returns the agent's metrics, for the web server.
func (a *Agent) Metrics() *web.Metrics { return a.metrics }

// Feed returns the agent's events, for the web server.
func (a *Agent) Feed() *web.Feed { return a.feed }

// Incidents returns the agent's store, for the web server.
func (a *Agent) Incidents() web.Incidents { return a.store }

func ownCPU() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// ask runs a function in the loop and waits for it.
func (a *Agent) ask(do func() error) error {
	done := make(chan error, 1)
	select {
	case a.jobs <- func() { done <- do() }:
	case <-time.After(askFor):
		return fmt.Errorf("the agent is busy; try again")
	}
	select {
	case err := <-done:
		return err
	case <-time.After(askFor):
		return fmt.Errorf("the agent is busy; the change may still be made")
	}
}

const askFor = 5 * time.Second
