package drill

import (
	"path/filepath"
	"strings"
)

// judgeFolders holds for every case: no alarm before the fault, and no
// incident that cannot be read.
func (t *trial) judgeFolders() {
	for id, why := range t.rec.broken {
		t.fail("incident.json of %s cannot be read: %s", id, why)
	}
	for _, s := range t.rec.incidents {
		if s.Began.Before(t.rec.trigger) {
			t.fail("false alarm: incident %s (%s) began %d ms before the trigger", filepath.Base(s.dir), s.Verdict,
				t.rec.trigger.Sub(s.Began).Milliseconds())
		}
	}
}

// judgeVerdict takes the time in which the stuck worker waited for a CPU off
// the bound: a loop that does not run can't be told from one that rests.
func (t *trial) judgeVerdict() {
	e := &t.c.Expect
	if t.main == nil {
		t.fail("no incident: expected verdict %s within %d ms", e.Verdict, e.WithinMS)
		return
	}
	if t.main.Verdict != e.Verdict {
		t.fail("verdict is %s, expected %s", t.main.Verdict, e.Verdict)
	}
	switch at := t.res.Timeline.Confirmed; {
	case at == nil:
		t.fail("the incident was never confirmed")
	case *at > int64(e.WithinMS)+t.main.Numbers.RunDelayMS:
		t.fail("confirmed %d ms after the trigger, later than %d ms, of which a busy machine kept the worker from a CPU for %d ms",
			*at, e.WithinMS, t.main.Numbers.RunDelayMS)
	}
	if t.res.Timeline.Captured == nil {
		t.fail("the incident has no captured evidence")
	}
}

func (t *trial) judgeEvidence() {
	want, got := &t.c.Expect, &t.res.Evidence
	for part := range strings.FieldsSeq(want.Frame) {
		if !t.hasFrame(part) {
			t.fail("frame %s does not occur in the hot path: %s", part, hotPath(got.Frames))
		}
	}
	if !strings.Contains(got.Request, want.Request) {
		t.fail("request is %q, expected one with %q", got.Request, want.Request)
	}
	for _, f := range []struct{ name, got, want string }{
		{"upstream", got.Upstream, want.Upstream},
		{"version", got.Version, want.ConfigVersion},
		{"peer", got.Peer, want.Peer},
	} {
		if f.want != "" && f.got != f.want {
			t.fail("%s is %q, expected %q", f.name, f.got, f.want)
		}
	}
	if t.sc.leaf != "" && (len(got.Frames) == 0 || !strings.Contains(got.Frames[0], t.sc.leaf)) {
		t.fail("the innermost frame does not name %s: %s", t.sc.leaf, hotPath(got.Frames))
	}
	if c := t.main.Change; t.sc.change != "" && (c == nil || !strings.Contains(c.Text, t.sc.change)) {
		t.fail("the incident does not say that the version changed %s", t.sc.change)
	}
	if t.sc.values != "" && !hasValue(got, t.sc.values) {
		t.fail("no value is %s: %v", t.sc.values, got.Values)
	}
}

func hasValue(e *Evidence, text string) bool {
	for _, v := range e.Values {
		if strings.Contains(strings.ToLower(v.Text), text) {
			return true
		}
	}
	return false
}

// hasFrame looks through the stack of the incident, and through its profile: a
// loop that spans several lines shows one of them in each sample.
func (t *trial) hasFrame(part string) bool {
	for _, f := range t.res.Evidence.Frames {
		if hasPlace(f, part) {
			return true
		}
	}
	if t.main == nil {
		return false
	}
	for _, f := range t.main.Evidence.Stack {
		if hasPlace(f.Function+" "+f.String(), part) {
			return true
		}
	}
	return inProfile(t.rec.shares[t.main.dir], part)
}

func hotPath(frames []string) string {
	if len(frames) == 0 {
		return "it has no frames"
	}
	if len(frames) > 8 {
		frames = append(append([]string{}, frames[:8]...), "...")
	}
	return strings.Join(frames, " < ")
}

func (t *trial) judgeNumbers() {
	e := &t.c.Expect
	if got := t.res.WorkersStuck; got != e.WorkersStuck && t.sc.kill == 0 && t.sc.rail == nil {
		t.fail("%d workers stuck, expected %d", got, e.WorkersStuck)
	}
	if e.StallMS > 0 && !about(t.res.StallMS, e.StallMS) && !about(t.main.length(), e.StallMS) {
		t.fail("standstill of %d ms, expected about %d ms", t.res.StallMS, e.StallMS)
	}
	if e.Victims == 0 && e.HolderVerdict == "" {
		return
	}
	lock := t.main.Lock
	if lock == nil {
		t.fail("the incident names no lock, expected its holder and %d victims", e.Victims)
		return
	}
	if len(lock.Victims) != e.Victims {
		t.fail("%d victims of the lock, expected %d", len(lock.Victims), e.Victims)
	}
	if e.HolderVerdict != "" && lock.Verdict != e.HolderVerdict {
		t.fail("verdict of the lock's holder is %q, expected %s", lock.Verdict, e.HolderVerdict)
	}
}

// length is how long an incident lasted on the wall, 0 while it is open. The
// agent counts a stall in CPU time, of which a busy machine gives less.
func (s *seen) length() int64 {
	if s.Ended == nil {
		return 0
	}
	return s.Ended.Sub(s.Began).Milliseconds()
}

// about allows for a machine that is busy with other things too.
func about(got int64, want int) bool {
	w := int64(want)
	return got >= w*6/10 && got <= w*2+500
}
