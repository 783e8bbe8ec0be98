package drill

import (
	"fmt"
	"path/filepath"
)

// metric returns a number of the balancer, such as "ejections_total".
func (f *nightFacts) metric(name string) float64 { return f.metrics[name] }

func (f *nightFacts) total() int {
	sum := 0
	for _, n := range f.statuses {
		sum += n
	}
	return sum
}

// probes tells of other clients that saw an error. An answer that is only late
// is the busy machine's.
func (f *nightFacts) probes() []string {
	failed, sent := 0, 0
	for _, s := range f.shots {
		if s.ended.IsZero() {
			continue
		}
		sent++
		if s.cut {
			failed++
		}
	}
	if failed > 0 {
		return []string{fmt.Sprintf("%d of %d requests of others failed", failed, sent)}
	}
	return nil
}

// judgeNight holds with and without an agent: an agent only must stay calm.
func (t *trial) judgeNight() {
	for _, s := range t.rec.incidents {
		t.fail("false alarm: incident %s with verdict %s: %s", filepath.Base(s.dir), s.Verdict, s.Reason)
	}
	t.judgeUntouched()
	for _, s := range t.rec.stuck {
		t.fail("left stuck: %s", s)
	}
	f := t.rec.night
	if f == nil {
		t.fail("the night did not take place")
		return
	}
	if f.problem != nil {
		t.fail("the night: %v", f.problem)
	}
	if want := t.sc.night.signal; want != "" && f.signals != nil && !f.signals[want] {
		t.fail("the agent told no signal of kind %s", want)
	}
	broken := t.sc.night.check(f)
	if t.sc.night.twin {
		if t.res.Broken = broken; len(broken) == 0 {
			t.fail("without the protection every promise was kept: this night proves nothing")
		}
		return
	}
	t.res.Failures = append(t.res.Failures, broken...)
	if !t.rec.healthy {
		t.fail("the healthy request is not answered with 200 at the end")
	}
}
