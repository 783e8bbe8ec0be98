package watchdog

import (
	"time"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// lookAtAll looks at every worker from outside: what sleeps is in no sample.
// Where they are many, those that rest take turns.
func (a *Agent) lookAtAll(now time.Duration) {
	a.looks++
	for _, w := range a.workers {
		if w.rests() && !isTurn(a.looks, w.TID, len(a.workers)) || a.glanceAt(w, now) {
			continue
		}
		a.lookAt(w, now)
	}
}

// rests says that the worker was last seen in its event wait, and nothing is
// suspected of it.
func (w *worker) rests() bool {
	return w.look.InEventWait && w.level == calm && w.decision.Verdict == judge.Healthy
}

const (
	oneLook   = 32 // so many that rest are looked at at a time,
	mostTurns = 3  // but each one by the third time at the latest
)

// isTurn says whether one of so many workers that rest is looked at this time.
func isTurn(look uint64, tid, workers int) bool {
	turns := min((workers+oneLook-1)/oneLook, mostTurns)
	return turns <= 1 || (look+uint64(tid))%uint64(turns) == 0
}

func (a *Agent) lookAt(w *worker, now time.Duration) {
	before := a.clock.mono()
	look, err := w.lookOnce(now)
	if err != nil {
		return // it ended; the scan will say so
	}
	now = a.clock.mono() // what was seen is no older than this
	w.look, w.glances = look, 0
	if asleep(look) && !look.InEventWait {
		w.napped = now
	}
	w.showShare(look, now)
	o := judge.Observation{
		Now: now, Before: before, CPUTime: look.CPUTime, Voluntary: max(look.Voluntary, w.last.Voluntary),
		InWait: look.InEventWait, Asleep: asleep(look), Stopped: look.Stopped || look.State == 't' || look.Frozen,
		Starting: w.starting(), Picks: uint64(w.crumb.Sequence), Proven: w.crumb.Active, Condemned: a.condemned(w), RunDelay: look.RunDelay, Throttled: look.Throttled,
	}
	if look.InEventWait {
		w.serves, w.lockOwner = w.Started, 0
	} else {
		a.lookCloser(w, look, &o)
	}
	a.judge(w, o)
}

// lookOnce reads as little as possible. Of a worker that does not rest it reads
// once a second whether a quota holds it back, and everything where there is a doubt.
func (w *worker) lookOnce(now time.Duration) (proxy.Look, error) {
	if w.closeLookDue(now) {
		w.lookedClosely = now
		if w.well() {
			return w.looker.LookAtQuota()
		}
		return w.looker.LookClosely()
	}
	return w.looker.Look()
}

func (w *worker) closeLookDue(now time.Duration) bool {
	return !w.look.InEventWait && now-w.lookedClosely >= time.Second
}

// lookCloser reads what only a worker outside of its event wait needs.
func (a *Agent) lookCloser(w *worker, look proxy.Look, o *judge.Observation) {
	o.Progress, o.ProgressOK = w.readProgress()
	o.TurnFrom = w.turnFrom(o)
	if w.slot != 0 {
		var slot [balancer.CrumbSize]byte
		if w.process.Memory().ReadMemory(w.slot, slot[:]) == nil {
			a.readCrumb(w, slot[:])
			o.Picks, o.Proven, o.Condemned = uint64(w.crumb.Sequence), w.crumb.Active, a.condemned(w)
		}
	}
	if asleep(look) {
		w.wait = proxy.DescribeWait(w.process.Memory(), w.PID, look)
		o.Waiting = w.wait.Text
		w.lockOwner = a.siblingOf(w, w.wait.LockOwner)
	}
	o.LockOwner, o.SelfOwned = w.lockOwner, w.lockOwner == w.PID
}

// asleep says that the thread sleeps, outside of its event wait.
func asleep(look proxy.Look) bool {
	return look.Detailed && (look.State == 'S' || look.State == 'D')
}

func (w *worker) readProgress() (uint64, bool) {
	switch w.Progress.Size {
	case 8:
		v, err := procmem.Uint64(w.process.Memory(), w.Progress.Addr)
		return v, err == nil
	case 4:
		v, err := procmem.Uint32(w.process.Memory(), w.Progress.Addr)
		return uint64(v), err == nil
	}
	return 0, false
}

// showShare updates the CPU share that pages show, about once a second.
func (w *worker) showShare(look proxy.Look, now time.Duration) {
	if wall := now - w.shareFrom; wall >= time.Second {
		if w.shareFrom > 0 {
			w.share = float64(look.CPUTime-w.shareCPU) / float64(wall)
		}
		w.shareFrom, w.shareCPU = now, look.CPUTime
	}
}
