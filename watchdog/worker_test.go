package watchdog

import (
	"testing"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// How closely a worker is watched, and what the sampler is told of it.
func TestFollow(t *testing.T) {
	for _, x := range []struct {
		name          string
		decision      judge.Decision
		episode       *episode
		budget        time.Duration
		level         level
		full, patient bool
	}{
		{name: "calm", decision: judge.Decision{Verdict: judge.Healthy}},
		{name: "a budget needs all stacks", decision: judge.Decision{Verdict: judge.Healthy}, budget: time.Second, full: true},
		{name: "at full CPU", decision: judge.Decision{Verdict: judge.Healthy, Close: true}, level: busy, full: true, patient: true},
		{name: "saturated", decision: judge.Decision{Verdict: judge.Saturated, Close: true}, level: busy, full: true, patient: true},
		{name: "saturated, with a budget", decision: judge.Decision{Verdict: judge.Saturated, Close: true}, budget: time.Second, level: busy, full: true},
		{name: "stands still", decision: judge.Decision{Verdict: judge.Saturated, Close: true, Stall: time.Millisecond}, level: closer, full: true},
		{name: "its waits are counted", decision: judge.Decision{Verdict: judge.Saturated, Close: true, Count: true}, level: closer, full: true},
		{name: "suspect", decision: judge.Decision{Verdict: judge.Suspect, Close: true}, level: closer, full: true},
		{name: "burst", decision: judge.Decision{Verdict: judge.Runaway, Close: true, Burst: true}, level: burst, full: true},
		{name: "its evidence is taken", decision: judge.Decision{Verdict: judge.Runaway, Close: true, Burst: true}, episode: &episode{written: true}, level: closer, full: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := &Agent{cfg: config.Config{}}
			a.cfg.RequestBudget.CPU = x.budget
			w := &worker{episode: x.episode, waits: &waitCounter{}}
			a.follow(w, judge.Decision{Verdict: judge.Runaway, Close: true, Burst: true}) // whatever it was before
			a.follow(w, x.decision)
			if w.level != x.level || w.watch.Full != x.full || w.watch.Patient != x.patient {
				t.Errorf("level %d, full %v, patient %v", w.level, w.watch.Full, w.watch.Patient)
			}
		})
	}
}
