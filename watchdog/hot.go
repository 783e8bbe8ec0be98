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

// representative returns the sample that tells best what a suspected worker
// does, and the lines of the function that is hot in it; a loop has several.
func representative(w *worker) (sampled, []incident.Line) {
	if len(w.recent) == 0 {
		return sampled{result: w.result, request: w.request, hasReq: w.hasReq}, nil
	}
	best := mostTypical(w.recent)
	return best, linesOf(w.recent, hotOf(best.result))
}

// mostTypical returns the sample whose frames most other samples show too. Of
// two equal ones the later wins.
func mostTypical(samples []sampled) sampled {
	count := map[string]int{}
	for _, s := range samples {
		for f := range distinct(s) {
			count[f]++
		}
	}
	candidates := slices.DeleteFunc(slices.Clone(samples), func(s sampled) bool { return s.glanced })
	if len(candidates) == 0 {
		candidates = samples // without values
	}
	best, most, least := candidates[len(candidates)-1], 0, 0
	for _, s := range candidates {
		score := 0
		for f := range distinct(s) {
			// Frames that few samples have are noise, however many they are.
			if 2*count[f] >= len(samples) || count[f] > 1 {
				score += count[f]
			}
		}
		// An interrupt on top of the loop is the machine's, not the loop's.
		kernel := kernelFrames(s.result.Stack)
		if score > most || score == most && kernel <= least {
			best, most, least = s, score, kernel
		}
	}
	return best
}

func kernelFrames(s stack.Stack) int {
	n := 0
	for _, f := range s.Frames {
		if f.Kind == stack.Kernel {
			n++
		}
	}
	return n
}

// distinct returns what a sample is told apart by: its Lua places and its
// native functions, and whether it shows a request. Kernel frames and leaves
// without a name change from sample to sample and tell nothing.
func distinct(s sampled) map[string]bool {
	set := map[string]bool{}
	for _, f := range s.result.Stack.Frames {
		if f.Kind != stack.Kernel && f.Kind != stack.Unknown {
			set[f.Place()] = true
		}
	}
	if s.hasReq {
		set[s.labels.Request] = true
	}
	return set
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
func frameWithLines(hot incident.Frame, lines []incident.Line) string {
	var places []string
	for _, l := range lines {
		if l.Share >= leastLineShare {
			places = append(places, l.Place)
		}
	}
	return fmt.Sprintf("%s (%s%s)", hot.Function, strings.Join(places, ", "), hot.LoopText(places...))
}
