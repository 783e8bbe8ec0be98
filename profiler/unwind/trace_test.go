package unwind

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// TestTraceRegisters wants what a compiled trace saved to be what its caller
// had: the registers of the C function that entered Lua are the same before and
// after its loop was compiled.
func TestTraceRegisters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go")
	x := start(t, luaHost(t), fmt.Sprintf(`io.write("ready\n") io.flush()
		local f repeat f = io.open(%q) until f
		local x, a, b, c, d, e, f, g = bit.bxor, 1, 2, 3, 4, 5, 6, 7
		while true do a, b, c, d, e, f, g = x(b, g), x(c, a), x(d, b), x(e, c), x(f, d), x(g, e), x(a, 9) end`, path))
	want := x.registersOf("lua_pcall", nil)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for tries := 0; ; tries++ {
		x.cont()
		time.Sleep(10 * time.Millisecond)
		x.stop()
		maps, err := x.maps() // the code of traces is new
		if err != nil {
			t.Fatal(err)
		}
		x.unwind.SetMaps(maps)
		frames, _ := x.unwind.Unwind(x.registers(), x.process, nil)
		p, ok := x.unwind.Locate(frames[0].PC)
		if !ok || p.Image != nil || len(frames) < 2 {
			if tries == 1000 {
				t.Fatal("no trace runs")
			}
			continue
		}
		size := int(frames[0].CFA - frames[0].Registers.SP())
		got := x.registersOf("lua_pcall", func(uint64) (int, bool) { return size, true })
		for _, r := range []int{stack.RBX, stack.RBP, stack.R12, stack.R13, stack.R14, stack.R15} {
			if got.Value[r] != want.Value[r] {
				t.Errorf("register %d is %#x, was %#x", r, got.Value[r], want.Value[r])
			}
		}
		return
	}
}

// registersOf returns those of a function on the stack, all that calls keep.
func (x *target) registersOf(function string, code Code) stack.Registers {
	x.t.Helper()
	frames, truncated := x.unwind.Unwind(x.registers(), x.process, code)
	names := x.names(frames)
	i := slices.Index(names, function)
	if i < 0 || frames[i].Registers.Known&amd64.kept != amd64.kept {
		x.t.Fatalf("%v %q: what %s has is unknown", names, truncated, function)
	}
	return frames[i].Registers
}
