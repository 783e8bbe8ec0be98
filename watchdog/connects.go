package watchdog

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/signals"
	"github.com/spinguard/spinguard/watchdog/config"
)

// countFor is how long connects are counted after the last hint at trouble.
const countFor = 2 * time.Minute

// connectsDelay lets the first samples of the workers come first.
const connectsDelay = 300 * time.Millisecond

// connectCounter has the kernel count the workers' connects while somebody
// wants to know. It runs beside the loop.
type connectCounter struct {
	kernel *bpf.Connects // nil: not available, or never wanted
	since  time.Duration // of the last hint
	why    string        // of the counting that goes on; empty: none
	told   string        // the last failure, said once
}

// step takes in what hints at trouble and says whether to count.
func (k *connectCounter) step(when config.When, hint string, now time.Duration) bool {
	if hint != "" {
		k.since = now
	}
	switch {
	case when == config.Always:
		k.why = "signals.connects is always"
	case when == config.Never || hint == "" && (k.why == "" || now-k.since >= countFor):
		k.why = ""
	case k.why == "":
		k.why = hint
	}
	return k.why != ""
}

// openConnects loads the counter while the agent may still do so.
func (a *Agent) openConnects() {
	if a.cfg.Signals.Connects == config.Never {
		return
	}
	kernel, err := bpf.LoadConnects()
	if err != nil {
		a.log.Warn("connects can't be counted by peer; the host's own counters remain", zap.Error(err))
		return
	}
	a.connects.kernel = kernel
}

// countConnects adds to a report of the host what the kernel counted.
func (a *Agent) countConnects(c *signals.Collector, r *signals.Report, workers []signals.Worker) {
	k := &a.connects
	if k.kernel == nil {
		return
	}
	before := k.why
	list, fresh, err := k.turn(a.settings.Load().Signals.Connects, r.Suspected, a.clock.mono(), workers)
	if err != nil && err.Error() != k.told {
		k.told = err.Error()
		a.log.Warn("connects can't be counted", zap.Error(err))
	}
	switch {
	case k.why != "" && before == "":
		a.log.Info("connects are counted by peer", zap.String("why", k.why))
	case k.why == "" && before != "":
		a.log.Info("connects are no longer counted")
	}
	c.TakeConnects(r, a.clock.wall(), workers, list, fresh)
	if r.Suspected != "" {
		k.since = a.clock.mono()
	}
	r.Counting = k.why
}

// turn attaches or detaches, and reads.
func (k *connectCounter) turn(when config.When, hint string, now time.Duration, workers []signals.Worker) (list []signals.Connects, fresh bool, err error) {
	if !k.step(when, hint, now) {
		return nil, false, k.kernel.Detach()
	}
	var pids []int
	for _, w := range workers {
		pids = append(pids, w.PID)
	}
	if err := k.kernel.SetOwners(pids); err != nil {
		return nil, false, err
	}
	if !k.kernel.Attached() {
		return nil, true, k.kernel.Attach()
	}
	tallies, untold, err := k.kernel.Read()
	for peer, t := range tallies {
		list = append(list, signals.Connects{PID: peer.PID, Peer: peer.Address, Tally: signals.Tally(t)})
	}
	if err == nil && untold > 0 {
		err = fmt.Errorf("over 4,096 pairs of process and peer: the others are not counted")
	}
	return list, false, err
}
