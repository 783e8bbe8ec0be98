package unwind

import (
	"errors"
	"fmt"

	"github.com/spinguard/spinguard/profiler/symbol"
)

// goRoots have no caller: a goroutine or thread begins here, or the stack was
// switched in a way that leaves no trace on it.
var goRoots = map[string]bool{
	"runtime.goexit": true, "runtime.mstart": true, "runtime.rt0_go": true, "runtime.mcall": true,
	"runtime.morestack": true,
}

// goSwitches move to another stack half-way; from there only the frame pointer
// leads back.
var goSwitches = map[string]bool{
	"runtime.systemstack": true, "runtime.asmcgocall": true, "runtime.nanotime1": true, "runtime.walltime": true,
	"time.now": true, "runtime.vgetrandom1": true,
}

// fromGo finds the caller of a Go function: by the size of its frame, or by
// the frame pointer where assembly has moved the stack pointer.
func (w *walk) fromGo(f *Frame, r *region, function *symbol.GoFunction) (Frame, error) {
	if goRoots[function.Name] && (f.ReturnAddress || function.Name == "runtime.goexit") {
		f.Found = GoTable
		return Frame{}, errEntry
	}
	if !w.switched(f, r, function) {
		if next, err := w.byStackSize(f, r, function); err == nil {
			return next, nil
		}
	}
	next, err := w.byFramePointer(f, r)
	if err != nil && !errors.Is(err, errEntry) {
		return Frame{}, fmt.Errorf("no caller of %s: %w", function.Name, err)
	}
	return next, err
}

// switched says that a frame may be past such a move: it has called something,
// or it is past its prologue.
func (w *walk) switched(f *Frame, r *region, function *symbol.GoFunction) bool {
	const prologue = 8 // the frame pointer was pushed
	if !goSwitches[function.Name] {
		return false
	}
	size, ok := function.StackSize(f.Lookup() - r.bias)
	return f.ReturnAddress || !ok || size > prologue
}

// byStackSize applies the table of stack sizes, which holds for x86-64 only:
// elsewhere the return address is not below the caller's frame.
func (w *walk) byStackSize(f *Frame, r *region, function *symbol.GoFunction) (Frame, error) {
	size, ok := function.StackSize(f.Lookup() - r.bias)
	if !ok || w.arch != &amd64 {
		return Frame{}, errImplausible
	}
	slot := f.Registers.Value[w.arch.sp] + uint64(size)
	ra, err := w.mem.word(slot)
	if err != nil || !w.plausible(ra) {
		return Frame{}, errImplausible
	}
	next := w.after(f, ra)
	if next.Registers.Known &= bits(w.arch.pc, w.arch.fp); size > 0 {
		w.restore(&next, w.arch.fp, slot-8)
	}
	return w.step(f, next, slot+8, GoTable)
}
