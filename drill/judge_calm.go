package drill

import (
	"path/filepath"
	"strings"
)

// judgeCalm is for cases in which nothing is wrong: they must look right, and
// nothing may be done.
func (t *trial) judgeCalm() {
	for _, s := range t.rec.incidents {
		t.fail("false alarm: incident %s with verdict %s: %s", filepath.Base(s.dir), s.Verdict, s.Reason)
	}
	t.judgeUntouched()
	e := &t.c.Expect
	if t.main == nil && t.res.Verdict != e.Verdict {
		t.fail("verdict is %q, expected %s", t.res.Verdict, e.Verdict)
	}
	at, given := t.rec.live.first[e.Verdict]
	if ms := at.Sub(t.rec.trigger).Milliseconds(); given && ms > int64(e.WithinMS) {
		t.fail("verdict %s only %d ms after the trigger, later than %d ms", e.Verdict, ms, e.WithinMS)
	}
	t.judgeStalls()
}

// judgeStalls wants the standstills of a calm case in the stall log.
func (t *trial) judgeStalls() {
	e := &t.c.Expect
	if e.StallMS == 0 && e.Frame == "" {
		return
	}
	if len(t.rec.stalls) == 0 {
		t.fail("the stall log is empty, expected a standstill of about %d ms", e.StallMS)
		return
	}
	if long := t.longest(); e.StallMS > 0 && !about(long.MS, e.StallMS) {
		t.fail("longest standstill is %d ms, expected about %d ms", long.MS, e.StallMS)
	}
	for part := range strings.FieldsSeq(e.Frame) {
		if !t.stallWith(func(s *stall) bool { return hasPlace(strings.Join(s.Frames, "\n"), part) }) {
			t.fail("frame %s occurs in none of the %d standstills", part, len(t.rec.stalls))
		}
	}
	if e.Request != "" && !t.stallWith(func(s *stall) bool { return strings.Contains(s.Request, e.Request) }) {
		t.fail("request %q occurs in none of the %d standstills", e.Request, len(t.rec.stalls))
	}
}

func (t *trial) stallWith(want func(*stall) bool) bool {
	for i := range t.rec.stalls {
		if want(&t.rec.stalls[i]) {
			return true
		}
	}
	return false
}

// judgeFault is for a drill without an agent: the fault itself must be real. A
// loop that turns without getting anywhere is not seen from the outside.
func (t *trial) judgeFault() {
	if t.c.calm() || t.c.Kind == "B" {
		return
	}
	t.res.WorkersStuck = len(t.rec.stuck)
	if want := t.c.Expect.WorkersStuck; len(t.rec.stuck) != want {
		t.fail("%d workers look stuck, expected %d", len(t.rec.stuck), want)
	}
}

// judgeProxy holds in every mode, without the agent too.
func (t *trial) judgeProxy() {
	p := t.res.Probe
	if t.c.calm() {
		if n := cutOff(t.rec.shots); n > 0 {
			t.fail("%d of %d probes were refused or cut off although nothing is wrong", n, p.Sent)
		}
		if !t.rec.healthy {
			t.fail("the healthy request is not answered with 200 at the end")
		}
		for _, s := range t.rec.stuck {
			t.fail("left stuck: %s", s)
		}
	}
	if t.mode == ModeEnforce && t.sc.share > 0 && float64(p.OK) < t.sc.share*float64(p.Sent) {
		t.fail("%d of %d probes were answered, less than %.0f %%", p.OK, p.Sent, t.sc.share*100)
	}
}
