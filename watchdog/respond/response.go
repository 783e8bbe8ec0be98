package respond

import (
	"fmt"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// Worker is what the response knows of one worker of an incident.
type Worker struct {
	PID     int
	Verdict judge.Verdict
	Stall   time.Duration
	Proven  bool // its crumb says that a picker runs, which takes microseconds
	Gone    bool // the process has ended
}

// Facts are what a step of the response is decided on.
type Facts struct {
	Now      time.Time
	Mode     config.Mode
	Workers  []Worker // all that were ever part of the incident
	Captured bool     // the evidence is on disk
	// CanQuarantine: the culprit is known and there is a way to refuse it.
	CanQuarantine bool
	// Successors that started after the first eviction: how many serve, and
	// whether one of them got stuck on the same culprit.
	Serving    int
	StuckAgain bool
	// Starting successors were born, and have not served yet.
	Starting int
	// Lifted: an operator has lifted the quarantine that this response made.
	Lifted bool
	// Suspects are workers that may join the incident: suspected, and on the
	// same culprit.
	Suspects int
	// Exempt says why workers of this proxy are never evicted; empty: they are.
	Exempt string
}

// Policy is the part of the configuration that a response follows.
type Policy struct {
	ActAfter      time.Duration
	EvictSpinning bool
}

// Kind of an action.
type Kind string

// The actions, in the only order in which they come.
const (
	Capture    Kind = "capture"
	Quarantine Kind = "quarantine"
	Evict      Kind = "evict"
	Recover    Kind = "recovered"   // the incident is over: its workers were replaced and serve
	EndAlone   Kind = "ended_alone" // the incident is over: the stall ended by itself
	Stop       Kind = "stop"        // no more actions on this incident: an alert for people
)

// Action is the next thing to do.
type Action struct {
	Kind   Kind
	PID    int       // Evict: whom
	At     time.Time // Recover, EndAlone: since when all are well
	Reason string
}

// How long a master may take to start a successor, and how long all must be
// well before the incident is over.
const (
	respawnWithin = 5 * time.Second
	// Stuck workers take the CPU that a successor needs for its start.
	serveWithin = 20 * time.Second
	holdFor     = 200 * time.Millisecond
)

// patience is how long to wait for the first successor.
func (f Facts) patience() time.Duration {
	if f.Starting > 0 {
		return serveWithin
	}
	return respawnWithin
}

// Response is the state of one incident's response. The zero value is a new one.
type Response struct {
	quarantined bool
	refused     bool // the quarantine was refused: no eviction either, the hang would come back
	stopped     bool
	over        bool
	evicted     map[int]bool
	firstAt     time.Time
	lastAt      time.Time // of the evictions
	wellSince   time.Time
}

// Quarantined records that the quarantine is in force, or that a rail refused it.
func (r *Response) Quarantined(err error) {
	r.quarantined = true
	r.refused = err != nil
}

// Evicted records that a worker was evicted.
func (r *Response) Evicted(pid int, now time.Time) {
	if r.evicted == nil {
		r.evicted = map[int]bool{}
	}
	if len(r.evicted) == 0 {
		r.firstAt = now
	}
	r.evicted[pid], r.lastAt = true, now
}

// Evictions returns how many workers were evicted.
func (r *Response) Evictions() int { return len(r.evicted) }

// Stopped says that the response gave up.
func (r *Response) Stopped() bool { return r.stopped }

// Over says that the incident has ended.
func (r *Response) Over() bool { return r.over }

// Next returns the next action, if there is one.
func (r *Response) Next(f Facts, p Policy) (Action, bool) {
	if r.over {
		return Action{}, false
	}
	if !f.Captured {
		return Action{Kind: Capture, Reason: "evidence comes first"}, true
	}
	if a, ok := r.ended(f); ok {
		return a, true
	}
	if r.stopped || f.Mode != config.Enforce {
		return Action{}, false
	}
	return r.act(f, p)
}

// act returns the next thing to do to the proxy.
func (r *Response) act(f Facts, p Policy) (Action, bool) {
	if f.Lifted && r.quarantined {
		return r.stop("an operator lifted the quarantine during the response: a manual word wins")
	}
	if f.StuckAgain && len(r.evicted) > 0 {
		return r.stop("a successor got stuck on the same culprit: evicting more would not help")
	}
	w, why := r.due(f, p)
	if why == "" {
		return Action{}, false
	}
	if f.CanQuarantine && !r.quarantined {
		return Action{Kind: Quarantine, Reason: why}, true
	}
	if r.refused {
		return r.stop("the quarantine was refused, and a successor would meet the same poison")
	}
	if f.Exempt != "" {
		return r.stop(f.Exempt)
	}
	if len(r.evicted) > 0 && f.Serving == 0 {
		if f.Now.Sub(r.firstAt) > f.patience() {
			return r.stop(fmt.Sprintf("the master started no serving successor within %s: evicting more would only take capacity away", f.patience()))
		}
		return Action{}, false
	}
	return Action{Kind: Evict, PID: w.PID, Reason: why}, true
}

func (r *Response) stop(reason string) (Action, bool) {
	r.stopped = true
	return Action{Kind: Stop, Reason: reason}, true
}

// due picks the worker that has been stuck longest of those that may be
// evicted now, and says why. Victims of a lock never are.
func (r *Response) due(f Facts, p Policy) (worst Worker, why string) {
	for _, w := range f.Workers {
		if w.Gone || r.evicted[w.PID] {
			continue
		}
		reason := dueReason(w, f, p, len(r.evicted) > 0)
		if reason != "" && (why == "" || w.Stall > worst.Stall) {
			worst, why = w, reason
		}
	}
	return worst, why
}

func dueReason(w Worker, f Facts, p Policy, followsFirst bool) string {
	switch {
	case w.Verdict == judge.Runaway && w.Proven && f.CanQuarantine:
		return "a picker runs for " + ms(w.Stall) + " that takes microseconds"
	case w.Verdict == judge.Runaway && followsFirst && f.CanQuarantine:
		return "stuck on the same culprit, and the first successor serves"
	case (w.Verdict == judge.Runaway || w.Verdict == judge.Blocked) && w.Stall >= p.ActAfter:
		return "stuck for " + ms(w.Stall) + ", allowed are " + ms(p.ActAfter)
	case w.Verdict == judge.Spinning && p.EvictSpinning && w.Stall >= p.ActAfter:
		return "spins for " + ms(w.Stall) + ", and evict_spinning is set"
	}
	return ""
}

// ended says whether all of the incident's workers are gone or well, for long
// enough.
func (r *Response) ended(f Facts) (Action, bool) {
	for _, w := range f.Workers {
		if !w.Gone && w.Verdict.Stuck() {
			r.wellSince = time.Time{}
			return Action{}, false
		}
	}
	if f.Suspects > 0 || f.Serving > 0 && r.waits(f) {
		r.wellSince = time.Time{}
		return Action{}, false
	}
	if len(r.evicted) > 0 && f.Serving == 0 {
		return r.lost(f)
	}
	if r.wellSince.IsZero() {
		r.wellSince = f.Now
	}
	if f.Now.Sub(r.wellSince) < holdFor {
		return Action{}, false
	}
	r.over = true
	if len(r.evicted) == 0 {
		return Action{Kind: EndAlone, At: r.wellSince, Reason: "its workers make progress again, without an action"}, true
	}
	return Action{Kind: Recover, At: r.wellSince, Reason: fmt.Sprintf("%d replaced, successors serve", len(r.evicted))}, true
}

// waits says that not every evicted worker has a successor that serves, and
// that there is still reason to wait: a reload may have made them fewer.
func (r *Response) waits(f Facts) bool {
	since := f.Now.Sub(r.lastAt)
	return f.Serving < len(r.evicted) && (since <= respawnWithin || f.Starting > 0 && since <= serveWithin)
}

// lost ends the response when no successor comes.
func (r *Response) lost(f Facts) (Action, bool) {
	if r.stopped || f.Now.Sub(r.firstAt) <= f.patience() {
		return Action{}, false
	}
	return r.stop(fmt.Sprintf("the master started no serving successor within %s", f.patience()))
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
