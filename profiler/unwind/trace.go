package unwind

import (
	"errors"

	"github.com/spinguard/spinguard/profiler/stack"
)

// traceFrame is the frame of a trace that spills nothing.
const traceFrame = interpreterFrame + 16

// byCode handles a compiled trace. It runs on the interpreter's C frame, whose
// layout fixes where the caller's registers are: rbp, rbx, r15, r14 under the
// return address, and r12, r13 under the interpreter's 80 bytes.
func (w *walk) byCode(f *Frame, size int) (Frame, error) {
	sp := f.Registers.Value[w.arch.sp]
	if size < 16 || size > 1<<20 {
		return Frame{}, errors.New("frame size of compiled code out of range")
	}
	cfa := sp + uint64(size)
	ra, err := w.mem.word(cfa - 8)
	if err != nil {
		return Frame{}, err
	}
	next := w.after(f, ra)
	if w.arch == &amd64 {
		w.restoreInterpreter(&next, cfa, sp)
		if size >= traceFrame {
			w.restore(&next, stack.R12, cfa-interpreterFrame)
			w.restore(&next, stack.R13, cfa-interpreterFrame-8)
		}
	}
	return w.step(f, next, cfa, JIT)
}
