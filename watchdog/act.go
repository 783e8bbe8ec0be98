package watchdog

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/notify"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/judge"
	"github.com/spinguard/spinguard/watchdog/respond"
)

// stepEpisodes lets every open incident take its next steps.
func (a *Agent) stepEpisodes() {
	kept := a.episodes[:0]
	for _, e := range a.episodes {
		a.step(e)
		a.write(e)
		if e.response.Over() {
			a.retain()
			continue
		}
		kept = append(kept, e)
	}
	clear(a.episodes[len(kept):])
	a.episodes = kept
}

// step carries out what is to be done now. A few steps may follow each other
// at once, such as capture, quarantine, evict.
func (a *Agent) step(e *episode) {
	for range 8 {
		for _, m := range e.members {
			m.update()
		}
		if e.pending || e.writing {
			return
		}
		action, ok := e.response.Next(a.facts(e), respond.Policy{ActAfter: a.actAfter(e.in), EvictSpinning: a.cfg.EvictSpinning})
		if !ok {
			a.explainInaction(e)
			return
		}
		if done := a.carryOut(e, action); !done {
			return
		}
	}
}

func (a *Agent) carryOut(e *episode, action respond.Action) bool {
	switch action.Kind {
	case respond.Capture:
		a.beginCapture(e)
		return false // the loop goes on while it is written
	case respond.Quarantine:
		a.quarantine(e, action.Reason)
	case respond.Evict:
		return a.evict(e, action) && e.response.Evictions() != 1 // the first one is alone
	case respond.Stop:
		a.refuse(e, "alert", action.Reason)
		e.inc.Outcome = incident.Refused
		if e.response.Evictions() > 0 {
			e.inc.Outcome = incident.StuckAgain
		}
	case respond.Recover:
		e.inc.Timeline.Recovered = incident.MS(e.inc.Began, action.At)
		a.end(e, incident.Recovered, action.Reason)
	case respond.EndAlone:
		a.endAlone(e, action.Reason)
	}
	return true
}

// facts collects what the response decides on.
func (a *Agent) facts(e *episode) respond.Facts {
	f := respond.Facts{
		Now: a.now(e), Mode: a.cfg.Mode, Captured: e.written, Exempt: e.in.exempt(),
		CanQuarantine: e.culprit.Known() && (e.culprit.Server != "" && e.in.canHold() || e.in.ledger != nil || a.cfg.Hook.File != "" || len(a.cfg.Hook.Command) > 0),
	}
	f.Lifted = e.culprit.Known() && a.manual[liftKey(e.culprit)]
	for _, m := range e.members {
		if m.w != nil && m.w.Master == m.pid && f.Exempt == "" {
			f.Exempt = "it has no master that would start a successor"
		}
		f.Workers = append(f.Workers, respond.Worker{PID: m.pid, Verdict: m.verdict, Stall: m.stall, Proven: m.proven, Gone: m.w == nil || m.evicted})
		if !e.firstOut.IsZero() && m.w != nil && !m.evicted && m.since.After(e.firstOut) && m.verdict.Stuck() {
			f.StuckAgain = true
		}
	}
	for _, w := range a.workers {
		if w.in.Master != e.in.Master || w.episode != nil {
			continue
		}
		if !e.firstOut.IsZero() && w.follows(e) && !w.decision.Verdict.Stuck() {
			if w.serves {
				f.Serving++
			} else {
				f.Starting++
			}
		}
		if w.decision.Verdict == judge.Suspect && a.onCulprit(e, w) {
			f.Suspects++
		}
	}
	return f
}

// onCulprit says that a worker may be about to get stuck on the same culprit.
func (a *Agent) onCulprit(e *episode, w *worker) bool {
	culprit, _ := a.culpritOf(w)
	if e.culprit.Known() {
		return culprit == e.culprit
	}
	return !culprit.Known() && e.place != "" && hotPlace(w.result.Stack) == e.place
}

// follows says that the worker does what a member did: it was first seen after
// the first eviction, or a reload put it into a member's place before. The
// master starts nobody for an evicted worker that it had told to end.
func (w *worker) follows(e *episode) bool {
	inPlace := false
	for _, m := range e.members {
		if m.pid == w.PID {
			return false
		}
		inPlace = inPlace || !w.Exiting && m.index == w.Index && m.start < w.StartTime
	}
	return inPlace || w.since.After(e.firstOut.Add(-20*time.Millisecond))
}

// evict ends one stuck worker, through its pidfd, so that a reused pid is
// never hit.
func (a *Agent) evict(e *episode, action respond.Action) bool {
	now := a.now(e)
	m := e.member(action.PID)
	if m == nil || m.w == nil {
		return true
	}
	// The worker may have moved on since its last sample.
	a.lookAt(m.w, a.clock.mono())
	if m.update(); !m.verdict.Stuck() {
		e.note(now, "note", fmt.Sprintf("worker %d moves on again: left alone", m.pid))
		return true
	}
	a.judgeEpisode(e) // who else hangs is known now, and gone afterwards
	target := fmt.Sprintf("worker %d (pid %d)", m.w.Index+1, m.pid)
	if err := a.rails.Evict(a.clock.wall()); err != nil {
		a.once(e, "evict", target, err.Error())
		return false
	}
	err := m.w.handle.Signal(unix.SIGKILL)
	result, text := "done", action.Reason
	if err != nil {
		result, text = "failed", err.Error()
	}
	e.act(now, "evict", target, result, text)
	m.evicted = true
	if e.firstOut.IsZero() {
		e.firstOut = a.clock.wall()
		e.inc.Timeline.Evicted = incident.MS(e.inc.Began, now)
	}
	e.response.Evicted(m.pid, now)
	e.inc.WorkersEvicted = e.response.Evictions()
	e.note(now, "evicted", fmt.Sprintf("%s: %s", target, text))
	a.metrics.IncEviction(e.in.Name)
	a.log.Warn("evicted", zap.String("incident", e.inc.ID), zap.Int("pid", m.pid), zap.String("reason", action.Reason), zap.NamedError("problem", err))
	a.tell("evicted", m.w, e.inc.ID, text)
	a.lastScan = 0 // look for the successor at once
	return true
}

func (e *episode) member(pid int) *member {
	for _, m := range e.members {
		if m.pid == pid {
			return m
		}
	}
	return nil
}

// act notes an action, done or not.
func (e *episode) act(at time.Time, kind, target, result, text string) {
	if len(e.inc.Actions) < 200 {
		e.inc.Actions = append(e.inc.Actions, incident.Action{AtMS: at.Sub(e.inc.Began).Milliseconds(), Kind: kind, Target: target, Result: result, Text: text})
	}
	e.dirty = true
}

// refuse notes that a rail forbade something, and says it where it is heard.
func (a *Agent) refuse(e *episode, kind, reason string) {
	now := a.now(e)
	e.act(now, kind, e.in.Name, "refused", reason)
	e.note(now, "refused", reason)
	a.metrics.IncRefused(e.in.Name)
	a.announce(notify.Refused, &e.inc)
	a.log.Error("nothing more is done about this incident; somebody must look", zap.String("incident", e.inc.ID), zap.String("reason", reason))
}

// once notes a refusal that may be repeated many times a second, once.
func (a *Agent) once(e *episode, kind, target, reason string) {
	if e.stepErr == kind+target {
		return
	}
	e.stepErr = kind + target
	e.act(a.now(e), kind, target, "refused", reason)
	e.note(a.now(e), "refused", reason)
	a.metrics.IncRefused(e.in.Name)
	a.announce(notify.Refused, &e.inc)
	a.log.Warn("a rail forbids it for now", zap.String("incident", e.inc.ID), zap.String("action", kind), zap.String("target", target), zap.String("reason", reason))
}

// explainInaction says once why nothing is done about a stuck worker.
func (a *Agent) explainInaction(e *episode) {
	if e.stepErr != "" || !e.written || e.response.Stopped() || e.response.Evictions() > 0 {
		return
	}
	reason := ""
	switch main := e.mainMember(); {
	case a.cfg.Mode != config.Enforce:
		reason = "mode is observe"
		if e.culprit.Known() {
			e.act(a.now(e), "quarantine", e.culprit.String(), "would", reason)
		}
		e.act(a.now(e), "evict", e.in.Name, "would", reason)
	case main != nil && main.verdict == judge.Spinning && !a.cfg.EvictSpinning:
		reason = "workers whose loop turns are left alone: evict_spinning is not set"
	case main != nil && main.verdict.Stuck():
		reason = fmt.Sprintf("a handler may still end: action after %s, not yet reached", a.actAfter(e.in))
	default:
		return
	}
	e.stepErr = "explained"
	a.log.Info("nothing is done", zap.String("incident", e.inc.ID), zap.String("reason", reason))
	e.note(a.now(e), "note", "nothing is done: "+reason)
}

// endAlone ends an incident without an action of the agent.
func (a *Agent) endAlone(e *episode, reason string) {
	outcome := incident.EndedAlone
	gone := true
	for _, m := range e.members {
		gone = gone && m.w == nil
	}
	if gone {
		outcome, reason = incident.Gone, "its workers ended for another reason"
	}
	a.end(e, outcome, reason)
}

func (a *Agent) end(e *episode, outcome incident.Outcome, reason string) {
	now := a.now(e)
	e.inc.Ended, e.inc.Outcome = &now, outcome
	if outcome == incident.Recovered {
		e.act(now, "verify", e.in.Name, "done", reason)
	}
	stall, wall := e.longest()
	e.inc.Numbers.StallMS, e.inc.Numbers.Standstill = stall.Milliseconds(), wall.Milliseconds()
	a.addSignals(e)
	e.note(now, string(outcome), reason)
	a.announce(notify.Ended, &e.inc)
	for _, m := range e.members {
		a.metrics.ObserveStall(e.in.Name, m.stall)
		if m.w != nil {
			m.w.episode = nil
		}
	}
	a.log.Warn("incident ended", zap.String("incident", e.inc.ID), zap.String("outcome", string(outcome)), zap.String("reason", reason),
		zap.Duration("after", now.Sub(e.inc.Began)))
}

// longest returns the longest standstill by its own clock and by the wall.
func (e *episode) longest() (stall, wall time.Duration) {
	for _, m := range e.members {
		stall, wall = max(stall, m.stall), max(wall, m.wall)
	}
	return stall, wall
}

// retain has old incidents dropped. If too much waits to be written, the end of
// the next one does.
func (a *Agent) retain() {
	now := a.clock.wall()
	a.writer.put(task{do: func() func() {
		dropped, err := a.store.Retain(now)
		if err != nil {
			a.log.Warn("old incidents could not be dropped", zap.Error(err))
		}
		if len(dropped) > 0 {
			a.log.Info("old incidents dropped", zap.Int("count", len(dropped)))
		}
		return nil
	}})
}
