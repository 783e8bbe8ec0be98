package watchdog

import (
	"slices"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
)

func TestHotPathAgainstBaselineAndSiblings(t *testing.T) {
	recorded := func(function string, n int) (list []profiler.Recorded) {
		for range n {
			list = append(list, profiler.Recorded{Weight: 20 * time.Millisecond, Stack: stack.Stack{Frames: []stack.Frame{
				{Kind: stack.Native, Function: "memcpy"}, {Kind: stack.Lua, Function: function, File: "app.lua", StartLine: 7},
			}}})
		}
		return list
	}
	current, n := sharesOf(append(recorded("render", 3), recorded("parse", 1)...))
	before, _ := sharesOf(recorded("parse", 2))
	siblings, _ := sharesOf(nil)
	got := hotPath(current, before, siblings)
	want := []string{"render (app.lua:7) 75%, before 0%", "parse (app.lua:7) 25%, before 100%"}
	if n != 4 || !slices.Equal(got, want) {
		t.Errorf("%d samples, %q", n, got)
	}
	if shares, _ := sharesOf([]profiler.Recorded{{}}); len(shares) != 0 {
		t.Error("a sample without frames is counted")
	}
	if got := hotPath(current, nil, current); got[0] != "render (app.lua:7) 75%, siblings 75%" {
		t.Errorf("%q", got)
	}
}
