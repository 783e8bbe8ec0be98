package watchdog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// A saturated worker is busy, not stuck: nothing is done to it, but what it
// spends its time on is told, at most this often. The last hotWindow is held
// against the time before, and against the siblings.
const (
	hotEvery  = 5 * time.Minute
	hotWindow = 5 * time.Second
	hotLeast  = 8 // samples
	hotTop    = 5
)

// hotShares is which share of its CPU time a worker spends where.
type hotShares map[string]float64

// reportSaturated tells the hot paths of workers that are saturated.
func (a *Agent) reportSaturated(now time.Duration) {
	for _, w := range a.workers {
		if w.decision.Verdict != judge.Saturated || w.hotAt != 0 && now-w.hotAt < hotEvery {
			continue
		}
		current, n := sharesOf(a.recorder.Stacks(profiler.Only(w.recorded()), now-hotWindow, now))
		if n < hotLeast {
			continue // not enough yet
		}
		w.hotAt = now
		before, _ := sharesOf(a.recorder.Stacks(profiler.Only(w.recorded()), now-baselineFor, now-hotWindow))
		var others []profiler.Recorded
		for _, s := range a.siblings(w) {
			others = append(others, a.recorder.Stacks(s.of, now-hotWindow, now)...)
		}
		siblings, _ := sharesOf(others)
		path := hotPath(current, before, siblings)
		a.log.Info("hot path", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.Int("samples", n), zap.Strings("functions", path))
		a.tell("hot_path", w, "", "saturated: "+strings.Join(path, "; "))
	}
}

// sharesOf weighs the functions that samples show: the innermost Lua function
// of each, else its leaf.
func sharesOf(samples []profiler.Recorded) (hotShares, int) {
	shares, total := hotShares{}, 0.0
	for _, s := range samples {
		if len(s.Stack.Frames) == 0 {
			continue
		}
		weight := max(s.Weight.Seconds(), 1e-6)
		shares[functionOf(s.Stack)] += weight
		total += weight
	}
	for name := range shares {
		shares[name] /= total
	}
	return shares, len(samples)
}

func functionOf(s stack.Stack) string {
	f := s.Frames[hotFrame(s)]
	if f.Kind == stack.Lua || f.Kind == stack.Trace {
		return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.StartLine)
	}
	return f.Function
}

// hotPath lists the functions with the largest shares, each with what it was
// before and what it is in the siblings, where either is known.
func hotPath(current, before, siblings hotShares) []string {
	names := make([]string, 0, len(current))
	for name := range current {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(current[b], current[a]), cmp.Compare(a, b)) })
	list := make([]string, 0, hotTop)
	for _, name := range names[:min(hotTop, len(names))] {
		text := fmt.Sprintf("%s %.0f%%", name, 100*current[name])
		if len(before) > 0 {
			text += fmt.Sprintf(", before %.0f%%", 100*before[name])
		}
		if len(siblings) > 0 {
			text += fmt.Sprintf(", siblings %.0f%%", 100*siblings[name])
		}
		list = append(list, text)
	}
	return list
}
