package watchdog

import (
	"testing"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
)

func at(line int) sampled {
	return sampled{result: profiler.Result{Stack: stack.Stack{Frames: []stack.Frame{
		{Kind: stack.Native, Function: "memcpy"},
		{Kind: stack.Lua, Function: "find", File: "/srv/templates.lua", Line: line, StartLine: 9},
	}}}}
}

func TestRepresentativeIsWhereMostSamplesAre(t *testing.T) {
	samples := []sampled{at(11), at(13), at(13), at(12), at(13), at(11)}
	r, lines, ok := representative(samples)
	if !ok || r.Stack.Frames[1].Line != 13 {
		t.Errorf("representative %+v, want the one at line 13", r.Stack.Frames)
	}
	if got, want := frameWithLines("find", lines), "find (templates.lua:13, templates.lua:11, templates.lua:12)"; got != want {
		t.Errorf("hot frame %q, want %q", got, want)
	}
}

func TestNothingRepresentsNoSamples(t *testing.T) {
	if _, _, ok := representative(nil); ok {
		t.Error("no samples, but a representative")
	}
}
