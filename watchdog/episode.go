package watchdog

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/watchdog/judge"
	"github.com/spinguard/spinguard/watchdog/respond"
	"github.com/spinguard/spinguard/web/api"
)

// episode is one open incident: workers of one proxy that are stuck on one
// culprit.
type episode struct {
	inc      incident.Incident
	in       *instance
	culprit  respond.Culprit
	digest   string
	place    string // of the hot frame, for culprits without a name
	members  []*member
	response respond.Response
	writing  bool // the evidence is being written
	written  bool
	told     int  // pid of the worker that the evidence describes
	pending  bool // a quarantine is on its way
	firstOut time.Time
	from     time.Duration // when it began, by the monotonic clock
	dirty    bool
	stepErr  string // the last refusal, so that it is said once
	awake    string // what keeps the loop of a spinning worker awake
}

// member is one worker of an episode; it outlives the worker.
type member struct {
	pid     int
	index   int
	start   uint64  // of the process, in clock ticks
	w       *worker // nil: gone
	verdict judge.Verdict
	stall   time.Duration
	wall    time.Duration // of the standstill, by the wall clock
	proven  bool
	evicted bool
	since   time.Time
}

// confirm opens an incident for a stuck worker, or adds the worker to the one
// that its culprit has.
func (a *Agent) confirm(w *worker) {
	culprit, digest := a.culpritOf(w)
	place := hotPlace(w.result.Stack)
	e := a.episodeFor(w, culprit, place)
	if e == nil {
		e = a.open(w)
		e.culprit, e.digest, e.place = culprit, digest, place
	}
	a.join(e, w)
}

// episodeFor finds the open incident that a stuck worker belongs to.
func (a *Agent) episodeFor(w *worker, culprit respond.Culprit, place string) *episode {
	for _, e := range a.episodes {
		if e.in.Master != w.in.Master {
			continue
		}
		sameCulprit := culprit.Known() && culprit == e.culprit
		samePlace := !culprit.Known() && !e.culprit.Known() && place != "" && place == e.place
		if sameCulprit || samePlace || e.sharesLock(w) {
			return e
		}
	}
	return nil
}

// sharesLock says that the worker waits for a member, or a member for it.
func (e *episode) sharesLock(w *worker) bool {
	for _, m := range e.members {
		if (w.lockOwner != 0 && m.pid == w.lockOwner) || (m.w != nil && m.w.lockOwner == w.PID) ||
			(m.w != nil && w.lockOwner != 0 && m.w.lockOwner == w.lockOwner) {
			return true
		}
	}
	return false
}

// open begins an incident with the worker that was seen first.
func (a *Agent) open(w *worker) *episode {
	began := w.last.Now
	if w.suspectedAt != 0 {
		began = w.suspectedAt
	}
	at := a.clock.wallAt(began)
	e := &episode{in: w.in, from: began}
	e.inc = incident.Incident{
		ID: incident.NewID(at, rand.Reader), Origin: a.cfg.Node, Proxy: w.in.Name, Kind: string(w.Kind), Mode: string(a.cfg.Mode),
		Worker: workerName(w), Began: at,
	}
	e.inc.Timeline.Suspected = incident.MS(at, at)
	e.note(at, "suspected", fmt.Sprintf("worker %d stands still", w.PID))
	a.episodes = append(a.episodes, e)
	return e
}

func workerName(w *worker) incident.Worker {
	return incident.Worker{Index: w.Index + 1, PID: w.PID, Since: w.since}
}

// join adds a worker to an incident.
func (a *Agent) join(e *episode, w *worker) {
	w.episode = e
	m := &member{pid: w.PID, index: w.Index, start: w.StartTime, w: w, since: w.since}
	e.members = append(e.members, m)
	now := a.now(e)
	e.note(now, "confirmed", fmt.Sprintf("worker %d is %s: %s", w.PID, w.decision.Verdict, w.decision.Reason))
	if e.inc.Timeline.Confirmed == nil {
		e.inc.Timeline.Confirmed = incident.MS(e.inc.Began, now)
		a.metrics.IncIncident(e.in.Name, string(w.decision.Verdict), e.inc.Began)
	}
	m.update()
	a.judgeEpisode(e)
	a.tell("confirmed", w, e.inc.ID, w.decision.Reason)
	e.dirty = true
}

// update takes in what the judge says of a member now.
func (m *member) update() {
	if m.w == nil {
		return
	}
	d := m.w.decision
	m.verdict, m.stall = d.Verdict, max(m.stall, d.Stall)
	if d.Verdict.Stuck() {
		m.wall = max(m.wall, d.Wall)
	}
	m.proven = m.w.crumb.Active
}

// lost notes that a member's process has ended.
func (e *episode) lost(w *worker) {
	for _, m := range e.members {
		if m.w == w {
			m.w = nil
			e.dirty = true
		}
	}
}

// judgeEpisode chooses the worker whose stack tells the story: the owner of
// the lock if there are victims, else the one that was seen first.
func (a *Agent) judgeEpisode(e *episode) {
	main := e.mainMember()
	if main == nil || main.w == nil {
		return
	}
	w := main.w
	e.inc.Worker = workerName(w)
	e.inc.Verdict, e.inc.WorkersStuck = string(w.decision.Verdict), e.mostStuck()
	if !e.written || e.told != w.PID {
		// Later the worker may be gone, and with it what its memory tells.
		a.describe(e, w)
	}
	e.inc.Reason = w.decision.Reason + e.awake
	a.describeLock(e, main)
	e.inc.WorkersStuck = e.mostStuck()
}

// mainMember returns the owner of the lock, or the first member.
func (e *episode) mainMember() *member {
	for _, victim := range e.members {
		if victim.w == nil || victim.verdict != judge.LockVictim {
			continue
		}
		for _, m := range e.members {
			if m.pid == victim.w.lockOwner {
				return m
			}
		}
	}
	for _, m := range e.members {
		if m.verdict.Stuck() && m.w != nil {
			return m
		}
	}
	if len(e.members) == 0 {
		return nil
	}
	return e.members[0]
}

// describeLock names holder and victims where a lock is involved.
// A worker that has waited too short for a verdict of its own is a victim too.
func (a *Agent) describeLock(e *episode, main *member) {
	var victims []incident.Worker
	for _, w := range a.workers {
		if w != main.w && w.in == main.w.in && w.lockOwner == main.pid && w.decision.Wall >= a.cfg.Thresholds.Suspect {
			victims = append(victims, workerName(w))
		}
	}
	if len(victims) == 0 || (e.inc.Lock != nil && len(victims) < len(e.inc.Lock.Victims)) {
		return
	}
	slices.SortFunc(victims, func(a, b incident.Worker) int { return a.Index - b.Index })
	e.inc.Verdict = string(judge.LockVictim)
	e.inc.Reason = fmt.Sprintf("%d workers wait for a lock that worker %d owns, which is itself stuck: %s", len(victims), main.pid, main.w.decision.Reason)
	e.inc.Lock = &incident.Lock{Holder: workerName(main.w), Verdict: string(main.verdict), Victims: victims}
}

// mostStuck returns how many workers were stuck at the same time at most.
func (e *episode) mostStuck() int {
	stuck := 0
	for _, m := range e.members {
		if m.verdict.Stuck() {
			stuck++
		}
	}
	if e.inc.Lock != nil {
		stuck = max(stuck, 1+len(e.inc.Lock.Victims))
	}
	return max(stuck, e.inc.WorkersStuck)
}

func (e *episode) note(at time.Time, kind, text string) {
	// Bounded, so that an incident that never ends does not grow for ever.
	if len(e.inc.Events) < 500 {
		e.inc.Events = append(e.inc.Events, incident.Event{At: at, Kind: kind, Text: text})
	}
	e.dirty = true
}

// noteOnce is note for what may be found again.
func (e *episode) noteOnce(at time.Time, text string) {
	if !slices.ContainsFunc(e.inc.Events, func(ev incident.Event) bool { return ev.Text == text }) {
		e.note(at, "note", text)
	}
}

// hotPlace names the place of a stack that two workers stuck on the same
// culprit share: the innermost Lua function, else the leaf.
func hotPlace(s stack.Stack) string {
	for _, f := range s.Frames {
		if f.Kind == stack.Lua || f.Kind == stack.Trace {
			return f.File + ":" + f.Function
		}
	}
	for _, f := range s.Frames {
		if f.Kind == stack.Native {
			return f.Function
		}
	}
	return ""
}

// tell publishes an event to the pages.
func (a *Agent) tell(kind string, w *worker, id, text string) {
	a.feed.Publish(api.Event{At: a.clock.wall(), Kind: kind, Proxy: w.in.Name, Worker: w.PID, Incident: id, Text: text})
}

// write has what changed of an incident put on disk.
func (a *Agent) write(e *episode) {
	if !e.dirty || !e.written {
		return
	}
	e.dirty = false
	e.inc.Rails = a.rails.Status(a.clock.wall())
	inc := snapshot(&e.inc)
	a.writer.put(task{whole: inc.ID, do: func() func() {
		if err := a.store.Update(&inc, nil); err != nil {
			a.log.Error("incident could not be updated on disk", zap.String("incident", inc.ID), zap.Error(err))
		}
		return nil
	}})
}
