package drill

import (
	"fmt"
	"time"
)

// trial is one run under judgement.
type trial struct {
	sc   *Scenario
	c    *Case // with the variables replaced
	mode string
	rec  *record
	main *seen // the incident that tells the story, or nil
	res  *Result
}

func (t *trial) fail(format string, args ...any) {
	t.res.Failures = append(t.res.Failures, fmt.Sprintf(format, args...))
}

// judge compares what was seen with what the case expects. It has no side
// effects and looks at no clock.
func judge(sc *Scenario, c *Case, mode string, rec *record) Result {
	res := Result{Name: c.Name, Kind: c.Kind, Mode: mode, Failures: []string{}, Incidents: []string{}, Agent: rec.usage}
	t := &trial{sc: sc, c: c, mode: mode, rec: rec, res: &res}
	t.res.Failures = append(t.res.Failures, rec.problems...)
	t.fill()
	switch {
	case sc.night != nil:
		t.judgeFolders()
		t.judgeNight()
	case mode == ModeNone:
		t.judgeFault()
		t.judgeProxy()
	default:
		t.judgeAgent()
		t.judgeProxy()
	}
	res.Passed = len(res.Failures) == 0
	return res
}

func (t *trial) judgeAgent() {
	t.judgeFolders()
	if t.c.calm() {
		t.judgeCalm()
		return
	}
	t.judgeVerdict()
	if t.main != nil {
		t.judgeEvidence()
		t.judgeNumbers()
	}
	switch {
	case t.mode == ModeEnforce && t.sc.rail != nil:
		t.judgeRail()
	case t.mode == ModeEnforce:
		t.judgeHealing()
	default:
		t.judgeUntouched()
	}
}

// fill copies into the result what was seen, whatever was expected.
func (t *trial) fill() {
	res, rec := t.res, t.rec
	t.main = mainIncident(rec.incidents, rec.trigger, t.c.Expect.Verdict)
	for _, s := range rec.incidents {
		res.Incidents = append(res.Incidents, s.dir)
		res.WorkersEvicted += s.WorkersEvicted
		res.StallMS = max(res.StallMS, s.Numbers.StallMS, s.Numbers.Standstill)
	}
	for _, s := range rec.stalls {
		res.StallMS = max(res.StallMS, s.MS)
	}
	t.fillIncident()
	at, ok := t.recovery()
	if ok {
		ms := at.Sub(rec.trigger).Milliseconds()
		res.Timeline.Recovered = &ms
	}
	res.Probe = count(rec.shots, at)
	res.Verdict = t.verdict()
}

func (t *trial) fillIncident() {
	res, s := t.res, t.main
	if s == nil {
		res.Evidence = t.stallEvidence()
		return
	}
	from := t.rec.trigger
	res.Incident, res.Reason, res.WorkersStuck = s.dir, s.Reason, t.workersStuck()
	res.Timeline.Suspected = s.after(from, s.Timeline.Suspected)
	res.Timeline.Confirmed = s.after(from, s.Timeline.Confirmed)
	res.Timeline.Captured = s.after(from, s.Timeline.Captured)
	// A stall that comes and goes has several incidents; the action may be in
	// any of them.
	for _, o := range t.rec.after() {
		res.Timeline.Quarantined = earlier(res.Timeline.Quarantined, o.after(from, o.Timeline.Quarantined))
		res.Timeline.Evicted = earlier(res.Timeline.Evicted, o.after(from, o.Timeline.Evicted))
	}
	e := s.Evidence
	res.Evidence = Evidence{
		Request: e.Request, Upstream: e.Upstream, Version: e.Version, Peer: e.Peer, Frames: e.Frames, Values: e.Values,
	}
	res.Evidence.orEmpty()
}

// workersStuck counts those of the main incident, and those that were stuck on
// another culprit meanwhile.
func (t *trial) workersStuck() int {
	n := t.main.WorkersStuck
	for _, o := range t.rec.after() {
		if o != t.main && o.Worker.PID != t.main.Worker.PID && o.Verdict == t.main.Verdict && o.overlaps(t.main) && o.Lock == nil {
			n += o.WorkersStuck
		}
	}
	return n
}

// overlaps says that two incidents were open at the same time.
func (s *seen) overlaps(o *seen) bool {
	return (s.Ended == nil || s.Ended.After(o.Began)) && (o.Ended == nil || o.Ended.After(s.Began))
}

// stallEvidence is that of the longest standstill that ended by itself.
func (t *trial) stallEvidence() Evidence {
	var e Evidence
	if s := t.longest(); s != nil {
		e.Request, e.Frames = s.Request, s.Frames
	}
	e.orEmpty()
	return e
}

func (t *trial) longest() *stall {
	var long *stall
	for i := range t.rec.stalls {
		if s := &t.rec.stalls[i]; long == nil || s.MS > long.MS {
			long = s
		}
	}
	return long
}

// verdict is the agent's: that of the incident; without one the expected
// verdict if the agent gave it at some time, else the worst that it gave.
func (t *trial) verdict() string {
	if t.main != nil {
		return t.main.Verdict
	}
	if _, given := t.rec.live.first[t.c.Expect.Verdict]; given {
		return t.c.Expect.Verdict
	}
	return t.rec.live.worst()
}

// recovery returns when all workers served again, as the drill itself saw it.
func (t *trial) recovery() (time.Time, bool) {
	return recovery(t.c, t.mode, t.rec, t.main)
}

// recovery is also used while the drill runs, to know when it is over.
func recovery(c *Case, mode string, rec *record, main *seen) (time.Time, bool) {
	if mode != ModeEnforce || c.calm() || main == nil {
		return time.Time{}, false
	}
	from, ok := rec.allEnded()
	if n := c.Expect.evictions(); n > 0 {
		evicted := rec.firstEviction()
		if evicted.IsZero() && !ok {
			return time.Time{}, false // who went until now was not evicted
		}
		from, ok = replaced(rec.changes, evicted, n, c.Workers)
	}
	if !ok {
		return time.Time{}, false
	}
	return recoveredAt(rec.shots, from)
}
