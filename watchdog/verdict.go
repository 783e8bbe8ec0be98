package watchdog

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// judge passes an observation to the judge and follows its decision. It says
// whether something must be done at once.
func (a *Agent) judge(w *worker, o judge.Observation) bool {
	if w.Kind == proxy.Go {
		// It has no word of progress, and goroutines change threads: a thread
		// that is on a CPU all the time is busy, no more. See lookAtGoProxies.
		w.last = o
		return false
	}
	o.EventWaits, o.Syscalls, o.Counting = w.waits.read()
	moved := o.ProgressOK && w.last.ProgressOK && o.Progress != w.last.Progress
	if moved && w.Started {
		w.serves = true
	}
	if o.ProgressOK {
		if o.Weight > 0 && w.wordOK && o.Progress != w.word {
			w.turnedAt = o.Now
		}
		w.word, w.wordOK = o.Progress, true
	}
	var d judge.Decision
	w.judge, d = judge.Judge(w.judge, o, a.limits(w.in, o.Now))
	w.last, w.decision = o, d
	if d.Ended >= a.cfg.Thresholds.Suspect {
		a.stallEnded(w, d)
		w.in.usual.learn(d, o.Now)
	}
	if d.Changed() {
		a.transition(w, d)
	}
	a.follow(w, d)
	if !d.Verdict.Stuck() {
		w.stackDue = 0
		return false
	}
	if w.episode != nil || !a.blockedStack(w) {
		return false
	}
	a.confirm(w)
	return true
}

func (a *Agent) limits(in *instance, now time.Duration) judge.Limits {
	t := a.cfg.Thresholds
	return judge.Limits{Suspect: t.Suspect, Runaway: t.Runaway, Blocked: t.Blocked, Window: t.Spinning, Young: t.Young, Turn: turnLimit,
		Usual: in.usual.length(now)}
}

// turnLimit is how much CPU time one turn of the loop may spend on timers alone.
const turnLimit = 2 * time.Second

// transition notes a changed verdict: one line each.
func (a *Agent) transition(w *worker, d judge.Decision) {
	bad := d.Verdict == judge.Suspect || d.Verdict.Stuck()
	switch {
	case bad && w.suspectedAt == 0:
		w.stallFrom = w.last.Now - d.Wall
		if d.Verdict != judge.Spinning {
			w.forgetBefore(w.stallFrom)
		}
		began := w.last.Now
		if d.Seen != 0 && (d.Verdict == judge.Blocked || d.Verdict == judge.LockVictim) {
			began = d.Seen // nobody was alarmed when it fell asleep
		}
		w.suspectedAt, w.cpuAt, w.delayAt = began, w.last.CPUTime, w.look.RunDelay
		w.dropped, w.blind = 0, 0
		w.lostAt = a.losses(w)
	case !bad:
		w.suspectedAt, w.recent = 0, nil
	}
	log := a.log.Info
	if d.Verdict.Stuck() {
		log = a.log.Warn
	}
	log("verdict", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.Int("tid", w.TID),
		zap.String("verdict", string(d.Verdict)), zap.String("before", string(d.Before)), zap.String("reason", d.Reason))
	a.tell("verdict", w, "", fmt.Sprintf("%s: %s", d.Verdict, d.Reason))
}

// forgetBefore leaves what the worker did before it stood still to the flight
// recorder.
func (w *worker) forgetBefore(stallFrom time.Duration) {
	w.recent = slices.DeleteFunc(w.recent, func(s sampled) bool { return s.when < stallFrom })
}

// stallEnded writes a line of the stall log: a standstill that ended by
// itself, with its request, place and length.
func (a *Agent) stallEnded(w *worker, d judge.Decision) {
	a.metrics.ObserveStall(w.in.Name, d.Ended)
	request := ""
	var frames []string
	if samples := w.during(d.Over); len(samples) > 0 {
		typical := mostTypical(samples)
		request, frames = typical.labels.Request, places(typical.result.Stack)
	}
	a.log.Info("stall", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.Time("at", a.clock.wallAt(w.last.Now)),
		zap.Int64("ms", d.Ended.Milliseconds()), zap.Int64("wall_ms", d.Over.Milliseconds()), zap.String("request", request), zap.Strings("frames", frames))
}

// during returns the samples of the standstill that ended with the last
// observation and lasted so long. That observation shows what came next.
func (w *worker) during(over time.Duration) []sampled {
	from := w.last.Now - over
	list := slices.DeleteFunc(slices.Clone(w.recent), func(s sampled) bool { return s.when < from || s.when >= w.last.Now })
	if len(list) == 0 {
		return w.recent
	}
	return list
}

// places lists the frames of a stack, leaf first.
func places(s stack.Stack) []string {
	list := make([]string, 0, len(s.Frames))
	for _, f := range s.Frames {
		list = append(list, incident.FrameText(f))
	}
	return list
}
