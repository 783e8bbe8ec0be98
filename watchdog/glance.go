package watchdog

import (
	"time"

	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

const (
	// Between two looks at a worker that works, so many may be glances.
	mostGlances = 4
	// Who was seen asleep outside of its event wait lately is always looked at:
	// its word may move although its loop does not turn, and only a look tells.
	napsAgain = 5 * time.Second
)

// glanceAt looks at a worker that works no closer than to see that its loop
// has turned since the last observation, for a fraction of the price of a look;
// for nothing if a sample has just shown it. It says whether that was enough:
// it is not where the word stands still, or where anything else than this word
// must be known.
func (a *Agent) glanceAt(w *worker, now time.Duration) bool {
	if !w.mayGlance(now) {
		return false
	}
	if w.turnedAt != 0 && now-w.turnedAt < lookEvery {
		w.glances++
		return true
	}
	before := a.clock.mono()
	word, ok := w.readProgress()
	if !ok || word == w.word {
		return false
	}
	cpu, delay, err := w.looker.Times()
	if err != nil {
		return false
	}
	w.glances++
	w.look.CPUTime, w.look.RunDelay, w.look.Repeated = cpu, delay, false
	now = a.clock.mono()
	w.showShare(w.look, now)
	o := judge.Observation{
		Now: now, Before: before, CPUTime: cpu, RunDelay: delay, Voluntary: w.last.Voluntary, Progress: word, ProgressOK: true,
		Picks: uint64(w.crumb.Sequence), Proven: w.crumb.Active, Condemned: a.condemned(w), LockOwner: w.lockOwner, SelfOwned: w.lockOwner == w.PID,
	}
	o.TurnFrom = w.turnFrom(&o)
	a.judge(w, o)
	return true
}

// mayGlance says that nothing is suspected of a worker that was at work when it
// was last seen, and that it was looked at a moment ago.
func (w *worker) mayGlance(now time.Duration) bool {
	return w.well() && !w.starting() && w.Kind != proxy.Go &&
		w.wordOK && !w.look.Repeated && w.glances < mostGlances && !w.closeLookDue(now) &&
		(w.napped == 0 || now-w.napped >= napsAgain)
}

// well says that nothing at all is suspected of a worker.
func (w *worker) well() bool {
	return w.level <= settled && w.decision.Stall == 0 && (w.decision.Verdict == judge.Healthy || w.decision.Verdict == judge.Saturated)
}
