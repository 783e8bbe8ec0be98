package luajit

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

// TestLoops reads the loops around the line that runs, interpreted and
// compiled, where the bytecode has lost its jumps to the numbers of traces.
func TestLoops(t *testing.T) {
	script, err := filepath.Abs("testdata/loops.lua")
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]int{7: {6, 5}, 10: {9, 5}, 13: {12, 5}, 18: nil}
	for _, e := range engines(t) {
		for _, mode := range []string{"on", "off"} {
			t.Run(e.name+"/"+mode, func(t *testing.T) {
				p, _ := start(t, e, script, mode)
				vm := findVMs(t, p)[0]
				pause(10)
				seen := 0
				for n := range 40 {
					pause(n)
					mem, regs := sample(t, vm, p)
					w, err := vm.Walk(mem, regs)
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range luaFrames(w) {
						loops, ok := want[f.Line]
						if ok && !slices.Equal(f.Loops, loops) {
							t.Errorf("line %d: loops from %v, want %v", f.Line, f.Loops, loops)
						}
						if loops != nil {
							seen++
						}
					}
				}
				if seen == 0 {
					t.Error("no sample shows a line inside the loops")
				}
			})
		}
	}
}

func luaFrames(w Walk) (frames []stack.Frame) {
	for _, f := range slices.Concat(w.Segments...) {
		if f.Kind == stack.Lua || f.Kind == stack.Trace {
			frames = append(frames, f)
		}
	}
	return frames
}
