package watchdog

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
)

// A line that fewer samples show is left out of the text of the hot frame.
const leastLineShare = 0.05

// representative returns the result that tells best what a suspected worker
// does: the last one at the place where most of its samples are. With it come
// the lines of the function at that place; a loop has several.
func representative(samples []sampled) (profiler.Result, []incident.Line, bool) {
	if len(samples) == 0 {
		return profiler.Result{}, nil, false
	}
	count := map[string]int{}
	for _, s := range samples {
		count[hotOf(s.result).Place()]++
	}
	best := samples[len(samples)-1]
	for _, s := range samples {
		if count[hotOf(s.result).Place()] >= count[hotOf(best.result).Place()] {
			best = s
		}
	}
	return best.result, linesOf(samples, hotOf(best.result)), true
}

func hotOf(r profiler.Result) stack.Frame {
	if len(r.Stack.Frames) == 0 {
		return stack.Frame{}
	}
	return r.Stack.Frames[hotFrame(r.Stack)]
}

// linesOf counts the lines at which the samples show one Lua function.
func linesOf(samples []sampled, hot stack.Frame) []incident.Line {
	if hot.Line == 0 {
		return nil
	}
	count, total := map[int]int{}, 0
	for _, s := range samples {
		if f := hotOf(s.result); f.File == hot.File && f.Function == hot.Function && f.StartLine == hot.StartLine {
			count[f.Line]++
			total++
		}
	}
	var lines []incident.Line
	for line, n := range count {
		lines = append(lines, incident.Line{Place: fmt.Sprintf("%s:%d", path.Base(hot.File), line), Share: float64(n) / float64(total)})
	}
	slices.SortFunc(lines, func(a, b incident.Line) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Place, b.Place))
	})
	return lines
}

// frameWithLines is the text of the hot frame with all of its lines, such as
// "find (templates.lua:13, templates.lua:11)".
func frameWithLines(function string, lines []incident.Line) string {
	var places []string
	for _, l := range lines {
		if l.Share >= leastLineShare {
			places = append(places, l.Place)
		}
	}
	return fmt.Sprintf("%s (%s)", function, strings.Join(places, ", "))
}
