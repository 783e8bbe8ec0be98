package watchdog

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/signals"
	"github.com/spinguard/spinguard/web/api"
)

// Signals that are kept, and how long before an incident they may explain it.
const (
	signalsKept   = 100
	signalsBefore = 5 * time.Minute
)

// collectSignals reads the host's signals beside the loop, until the context
// ends.
func (a *Agent) collectSignals(ctx context.Context) {
	c := signals.New()
	tick := time.NewTicker(signals.Every)
	defer tick.Stop()
	told, goProxies := "", map[int]*goProcess{}
	for {
		a.lookAtGoProxies(ctx, goProxies)
		workers := a.signalWorkers()
		report, err := c.Collect(a.clock.wall(), workers)
		if err != nil && err.Error() != told {
			told = err.Error()
			a.log.Warn("not all signals of the host can be read", zap.Error(err))
		}
		a.countConnects(c, &report, workers)
		select {
		case <-ctx.Done():
			return
		case a.jobs <- func() { a.takeSignals(report) }:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *Agent) signalWorkers() []signals.Worker {
	var list []signals.Worker
	for _, w := range a.view.Load().workers {
		list = append(list, signals.Worker{Proxy: w.Proxy, Index: w.Index, PID: w.PID, Since: w.Started})
	}
	return list
}

// takeSignals takes in one report.
func (a *Agent) takeSignals(r signals.Report) {
	for _, s := range r.Signals {
		a.log.Info("signal", zap.String("kind", s.Kind), zap.String("proxy", s.Proxy), zap.String("text", s.Text))
		a.feed.Publish(api.Event{At: s.At, Kind: "signal", Proxy: s.Proxy, Text: s.Text})
	}
	a.recentSignals = append(a.recentSignals, r.Signals...)
	if n := len(a.recentSignals) - signalsKept; n > 0 {
		a.recentSignals = slices.Delete(a.recentSignals, 0, n)
	}
	a.hostReport = r
}

// addSignals gives an incident what the host said shortly before it and since.
func (a *Agent) addSignals(e *episode) {
	e.inc.Signals = nil
	for _, s := range a.recentSignals {
		if s.At.After(e.inc.Began.Add(-signalsBefore)) && (s.Proxy == "" || s.Proxy == e.in.Name) {
			e.inc.Signals = append(e.inc.Signals, incident.Signal{At: s.At, Kind: s.Kind, Text: s.Text})
		}
	}
}

func (a *Agent) signalView(workers []api.WorkerStatus) api.Signals {
	r := a.hostReport
	v := api.Signals{Recent: []api.Signal{}, Counters: r.Counters, Restarts: r.Restarts, Workers: []api.WorkerSignals{},
		Backends: r.Backends, Connects: []api.PeerConnects{}, Counting: r.Counting}
	for _, p := range r.Connects {
		v.Connects = append(v.Connects, connectsView(p))
	}
	for _, s := range a.recentSignals {
		v.Recent = append(v.Recent, api.Signal{At: s.At, Kind: s.Kind, Proxy: s.Proxy, Text: s.Text})
	}
	for _, w := range workers {
		f, ok := r.Files[w.PID]
		if !ok {
			continue
		}
		v.Workers = append(v.Workers, api.WorkerSignals{Proxy: w.Proxy, Index: w.Index, PID: w.PID, OpenFiles: f.Open, FilesLimit: f.Limit,
			ExhaustionSeconds: f.Exhaustion.Seconds(), QueueShare: r.Queues[w.PID]})
	}
	return v
}

// Signals implements web.Source.
func (a *Agent) Signals() api.Signals { return a.read().signals }

func connectsView(p signals.PeerConnects) api.PeerConnects {
	v := api.PeerConnects{
		Proxy: p.Proxy, Begun: p.Begun, Established: p.Established, Refused: p.Refused, TimedOut: p.TimedOut, Unreachable: p.Unreachable,
		GivenUp: p.GivenUp, Closed: p.Closed, Reset: p.Reset, Lost: p.Lost,
	}
	if p.Peer.IsValid() {
		v.Peer = p.Peer.String()
	}
	return v
}
