package profiler

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// Recorded is one sample that the recorder kept.
type Recorded struct {
	Worker Worker
	When   time.Duration
	Weight time.Duration
	Stack  stack.Stack
	Labels Labels
}

// Stacks returns what was recorded of the workers that match, from since up to
// but without until, oldest first.
func (r *Recorder) Stacks(match func(Worker) bool, since, until time.Duration) []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Recorded
	for w, t := range r.workers {
		if !match(w) {
			continue
		}
		for i := range t.records {
			if rec := &t.records[i]; rec.when >= since && rec.when < until {
				out = append(out, Recorded{w, rec.when, rec.weight, rec.full(), rec.labels})
			}
		}
	}
	slices.SortFunc(out, func(a, b Recorded) int {
		return cmp.Or(cmp.Compare(a.When, b.When), cmp.Compare(a.Worker.PID, b.Worker.PID), cmp.Compare(a.Worker.TID, b.Worker.TID))
	})
	return out
}

// Fill adds to a builder what was recorded of the workers that match, from
// since up to but without until, with what was lost, and how far the recorder
// had to degrade. Losses are kept by the second, and counted for each second
// that the span touches.
func (r *Recorder) Fill(b *Builder, match func(Worker) bool, since, until time.Duration) {
	for _, rec := range r.Stacks(match, since, until) {
		b.AddStack(rec.Stack, 1, rec.Weight, rec.Labels)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, t := range r.workers {
		if !match(w) {
			continue
		}
		for _, l := range t.lost {
			begin := time.Duration(l.second) * time.Second
			if begin+time.Second > since && begin < until {
				b.Lost(l.reason, l.n)
			}
		}
	}
	b.Comment("recorder_degraded", r.step.String())
	b.Comment("recorder_used_bytes", strconv.Itoa(r.used))
	b.Comment("recorder_budget_bytes", strconv.Itoa(r.budget))
}

// Only matches one worker.
func Only(w Worker) func(Worker) bool {
	return func(x Worker) bool { return x == w }
}
