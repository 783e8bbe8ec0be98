package profiler

import (
	"slices"
	"testing"

	"github.com/spinguard/spinguard/bpf"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// The middle of a stack whose two ends were copied is read from live memory,
// and believed only while the copied window below it is what it was.
func TestTheMiddleOfADeepStack(t *testing.T) {
	const leaf, middle, root, end = 0x1000, 0x2000, 0x9000, 0xa000
	live := procmem.Window{Addr: 0, Data: make([]byte, end+0x1000)}
	copied := []procmem.Window{
		{Addr: leaf, Data: slices.Clone(live.Data[leaf:middle])},
		{Addr: root, Data: slices.Clone(live.Data[root:end])},
	}
	frames := []unwind.Frame{{CFA: leaf + 0x100}, {CFA: middle - 8}, {CFA: middle + 0x100}, {CFA: root + 0x100}}
	word := make([]byte, 8)
	r := newRest(&modules{}, live, copied)
	for addr, want := range map[uint64]bool{middle: true, root - 8: true, middle - 8: false, root: false, root - 4: false, end: false, leaf - 8: false, ^uint64(0) - 3: false} {
		if got := r.ReadMemory(addr, word) == nil; got != want {
			t.Errorf("read of %#x: %v, want %v", addr, got, want)
		}
	}
	if r.moved() {
		t.Error("nothing has moved")
	}
	live.Data[middle-1]++
	if !r.moved() {
		t.Error("the thread has returned to the middle, and nobody saw it")
	}
	if cut, why := r.cut(frames); len(cut) != 3 || why != "frame 2: cut window at 0x2000" {
		t.Errorf("%d frames are left: %q", len(cut), why)
	}

	r = newRest(&modules{switches: true}, live, copied)
	if r.ReadMemory(middle, word) == nil {
		t.Error("between two stacks of a Go program lies no middle")
	}
	if r = newRest(&modules{}, live, copied[:1]); r.ReadMemory(middle, word) == nil || r.moved() {
		t.Error("a stack whose end was not copied has no middle")
	}
}

func TestWindowsThatMeetAreOne(t *testing.T) {
	s := newSnapshot(procmem.Window{})
	first := make([]byte, 16, 64)
	for _, w := range []procmem.Window{{Addr: 100, Data: first}, {Addr: 116, Data: []byte{1, 2}}, {Addr: 200, Data: []byte{3}}, {Addr: 300}} {
		s.add(bpf.Window(w))
	}
	if len(s.windows) != 2 || len(s.windows[0].Data) != 18 || s.windows[0].Data[17] != 2 || first[:17][16] != 0 {
		t.Errorf("%v", s.windows)
	}
}
