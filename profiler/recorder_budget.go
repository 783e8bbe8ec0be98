package profiler

import (
	"fmt"
	"slices"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// step is how far the recorder has degraded; each step includes those before.
type step int

const (
	everything step = iota
	dropValues      // no Lua values
	halveRate       // every other sample
	cutDepth        // the 32 frames next to the leaf, and the root
	dropOldest      // less than the time that was asked for
)

var stepNames = [...]string{"none", "values dropped", "rate halved", "depth cut", "oldest dropped"}

func (s step) String() string { return stepNames[s] }

// cutFrames is how many frames a stack keeps at the step cutDepth.
const cutFrames = 33

// longestInterval is the time between two stacks of one worker at most, however
// many share the total: an incident must find some of each.
const longestInterval = 2 * time.Second

// interval is the time between two stacks of one worker. Workers that rest have
// no samples and do not count.
func (r *Recorder) interval() time.Duration {
	d := time.Second / time.Duration(r.rate)
	if r.total > 0 {
		share := time.Second * time.Duration(len(r.workers)) / time.Duration(r.total)
		d = max(d, min(share, longestInterval))
	}
	if r.step >= halveRate {
		d *= 2
	}
	return d
}

// degrade gives up the least valuable things until the budget holds.
func (r *Recorder) degrade() {
	for r.used > r.budget && r.step < dropOldest {
		r.step++
		r.calm = r.newest
		r.apply()
	}
	for r.used > r.budget && r.dropOldest() {
	}
}

// apply makes what is already recorded fit the current step.
func (r *Recorder) apply() {
	for _, t := range r.workers {
		switch r.step {
		case dropValues:
			for i := range t.records {
				r.used -= valuesCost(t.records[i].values)
				t.records[i].values = nil
			}
		case halveRate:
			r.thin(t)
		case cutDepth:
			for i := range t.records {
				old := t.records[i].stack
				t.records[i].stack = r.hold(t.records[i].full())
				r.release(old)
			}
		}
	}
}

// thin drops every other record; its neighbour takes over its weight.
func (r *Recorder) thin(t *track) {
	kept := t.records[:0]
	var carried time.Duration
	for _, rec := range t.records {
		if t.odd = !t.odd; t.odd {
			rec.weight += carried
			carried = 0
			kept = append(kept, rec)
			continue
		}
		carried += rec.weight
		r.used -= rec.cost()
		r.release(rec.stack)
		r.lose(t, rec.when, "thinned", 1)
	}
	t.carried += carried
	clear(t.records[len(kept):])
	t.records = kept
	slices.SortStableFunc(t.lost, func(a, b loss) int { return int(a.second - b.second) })
}

// dropOldest forgets the oldest record of the worker that has most of them.
func (r *Recorder) dropOldest() bool {
	var most *track
	for _, t := range r.workers {
		if len(t.records) > 0 && (most == nil || len(t.records) > len(most.records) ||
			len(t.records) == len(most.records) && t.records[0].when < most.records[0].when) {
			most = t
		}
	}
	if most == nil {
		return false
	}
	n := max(1, len(most.records)/16)
	for _, rec := range most.records[:n] {
		r.lose(most, rec.when, "recorder_budget", 1)
	}
	slices.SortStableFunc(most.lost, func(a, b loss) int { return int(a.second - b.second) })
	r.drop(most, n)
	return true
}

// recover goes back one step once half of the budget has been enough for as
// long as the recorder remembers.
func (r *Recorder) recover() {
	if r.step == everything || r.used > r.budget/2 {
		r.calm = r.newest
		return
	}
	if r.newest-r.calm >= r.keep {
		r.step--
		r.calm = r.newest
	}
}

// cutStack keeps the frames next to the leaf, and the root.
func cutStack(s stack.Stack, n int) stack.Stack {
	if len(s.Frames) <= n {
		return s
	}
	cut := len(s.Frames) - n
	frames := append([]stack.Frame(nil), s.Frames[:n-1]...)
	frames = append(frames, stack.Frame{Function: fmt.Sprintf("[%d frames cut by the recorder]", cut)}, s.Frames[len(s.Frames)-1])
	return stack.Stack{Frames: frames, Truncated: s.Truncated}
}
