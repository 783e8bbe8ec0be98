package luajit

import (
	"slices"

	"github.com/spinguard/spinguard/profiler/stack"
)

// unsavedCall says that the interpreter has called C code without saving its
// place in the thread: plain functions of numbers, such as pow. What the
// thread says then is some older place.
func (w *walker) unsavedCall() bool {
	ret := w.r.u64(w.cf - 8)
	if w.vmstate != ^int32(0) || ret <= w.vm.lo || ret >= w.vm.hi {
		return false
	}
	n, _ := slices.BinarySearch(w.vm.handlers, ret)
	if n == 0 {
		return false
	}
	start := w.vm.handlers[n-1]
	code := w.r.bytes(start, int(ret-start))
	for i := 0; i+4 <= len(code); i++ {
		// mov [reg+base], rdx
		if code[i]&^1 == 0x48 && code[i+1] == 0x89 && code[i+2]&^7 == 0x50 && int64(code[i+3]) == w.vm.base {
			return false
		}
	}
	return code != nil
}

// spilled looks for the interpreter's registers where the C code that it
// called must have saved them, if it uses them: on the machine stack below
// the interpreter's frame.
func (w *walker) spilled(s *slots) (leaf, string) {
	const most = 512
	sp := w.regs.SP() &^ 7
	if sp >= w.cf || w.cf-sp > most {
		sp = w.cf - most
	}
	words := []uint64{w.regs.Value[stack.RBP], w.regs.Value[stack.RBX]}
	for b := w.r.partial(sp, int(w.cf-8-sp)); len(b) >= 8; b = b[8:] {
		words = append(words, le64(b))
	}
	for i := len(words) - 1; i >= 0; i-- {
		if !w.inStack(words[i]) {
			continue
		}
		for j := len(words) - 1; j >= 0; j-- {
			if l, ok := w.agreed(words[i], words[j], s); ok {
				return l, ""
			}
		}
	}
	return leaf{}, "the interpreter called C code without saving its place"
}
