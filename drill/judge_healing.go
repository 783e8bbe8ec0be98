package drill

import "strings"

// judgeHealing is for mode enforce and a case in which something is wrong.
func (t *trial) judgeHealing() {
	e, res := &t.c.Expect, t.res
	if e.Heal == healNone {
		t.judgeEnded()
		return
	}
	if res.Timeline.Evicted == nil {
		t.fail("no worker was evicted%s", t.refusal())
	}
	// Of two agents, the first may have evicted a worker and not lived to tell.
	if want := e.evictions(); res.WorkersEvicted != want && t.sc.kill == 0 {
		t.fail("%d workers evicted, expected %d%s", res.WorkersEvicted, want, t.refusal())
	}
	if e.Heal == healQuarantine {
		t.judgeQuarantine()
	}
	t.judgeEnded()
}

// refusal quotes the agent's own reason for not acting.
func (t *trial) refusal() string {
	if t.main == nil {
		return ""
	}
	for _, a := range t.main.Actions {
		if a.Result == "refused" || a.Result == "failed" {
			return ": " + a.Kind + " of " + a.Target + " " + a.Result + ": " + a.Text
		}
	}
	return ""
}

func (t *trial) judgeQuarantine() {
	q, at := t.res.Timeline.Quarantined, t.res.Timeline
	if q == nil {
		t.fail("nothing was quarantined")
		return
	}
	if at.Captured != nil && *q < *at.Captured {
		t.fail("quarantined at %d ms, before the evidence was captured at %d ms", *q, *at.Captured)
	}
	if at.Evicted != nil && *at.Evicted < *q {
		t.fail("evicted at %d ms, before the quarantine at %d ms", *at.Evicted, *q)
	}
	if want := t.c.Quarantine; want != nil && !hasLine(t.rec.hook, want.Line) {
		t.fail("the quarantine file lacks the line %q; it holds %q", want.Line, t.rec.hook)
	}
}

func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == strings.TrimSpace(want) {
			return true
		}
	}
	return false
}

func (t *trial) judgeEnded() {
	if t.main == nil {
		return
	}
	if t.res.Timeline.Recovered == nil {
		t.fail("the proxy did not recover")
		return
	}
	if n := t.res.Probe.FailedAfterRecovery; n > 0 {
		t.fail("%d probes failed after the recovery", n)
	}
	if !t.rec.healthy {
		t.fail("the healthy request is not answered with 200 after the recovery")
	}
	if !t.rec.healed {
		t.fail("the request that tells a healed proxy is not answered with 200")
	}
	for _, s := range t.rec.stuck {
		t.fail("left stuck: %s", s)
	}
}

// judgeUntouched is for modes in which nothing may be done.
func (t *trial) judgeUntouched() {
	if n := t.res.WorkersEvicted; n > 0 || t.res.Timeline.Evicted != nil {
		t.fail("%d workers were evicted in mode %s", n, t.mode)
	}
	if t.res.Timeline.Quarantined != nil || t.rec.hook != "" {
		t.fail("something was quarantined in mode %s", t.mode)
	}
	if t.c.TriggerCommand != "" {
		return // the command may end workers itself
	}
	for _, c := range t.rec.changes {
		if c.gone {
			t.fail("worker %d ended in mode %s", c.pid, t.mode)
		}
	}
}
