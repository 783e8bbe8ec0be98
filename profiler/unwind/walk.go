package unwind

import (
	"errors"
	"fmt"
)

// errEntry ends a walk that reached the entry of the process or thread.
var errEntry = errors.New("entry")

// walk is the state of one Unwind call.
type walk struct {
	u         *Unwinder
	arch      *arch
	mem       *stackMemory
	code      Code
	frames    []Frame
	truncated string
	depth     int  // frames walked, also those that are left out
	scans     int  // scans that are still allowed
	jumps     int  // stack switches so far
	trying    bool // a trial of a scan
}

// run appends frames until the entry, the bound or an error.
func (w *walk) run(f Frame) {
	for {
		if w.depth == maxDepth {
			w.truncated = fmt.Sprintf("frame %d: deeper than is followed", w.depth)
			return
		}
		if len(w.frames) == MaxFrames {
			w.leaveOut()
		}
		w.frames = append(w.frames, f)
		w.depth++
		this := &w.frames[len(w.frames)-1]
		next, err := w.caller(this)
		if err != nil {
			if !errors.Is(err, errEntry) {
				w.truncated = fmt.Sprintf("frame %d: %v", w.depth-1, err)
			}
			return
		}
		if next.PC == 0 { // convention for the first frame of a thread
			return
		}
		f = next
	}
}

// leaveOut makes room in the middle: the leaf tells what runs, the root who
// asked for it, and in between lies a recursion.
func (w *walk) leaveOut() {
	const from, n = MaxFrames / 2, MaxFrames / 4
	before := w.frames[from].LeftOut
	w.frames = append(w.frames[:from], w.frames[from+n:]...)
	w.frames[from].LeftOut = before + n
}

// caller finds the frame above f and notes in f how.
func (w *walk) caller(f *Frame) (Frame, error) {
	r := w.u.region(f.Lookup())
	if r == nil {
		return w.fromNowhere(f)
	}
	if r.image == nil {
		return w.fromAnonymous(f, r)
	}
	if r.goTab != nil {
		if function, ok := r.goTab.Function(f.Lookup() - r.bias); ok {
			return w.fromGo(f, r, function)
		}
	}
	if function, ok := r.function(f.Lookup()); ok {
		if r.inBlob(f.Lookup()) {
			return w.fromInterpreter(f, r, function)
		}
		return w.byRules(f, r, function)
	}
	return w.withoutRules(f, r)
}

// step makes the caller's frame, checked for progress.
func (w *walk) step(f *Frame, next Frame, cfa uint64, found Method) (Frame, error) {
	sp := f.Registers.Value[w.arch.sp]
	forward := cfa > sp || cfa == sp && w.arch.link >= 0 && !f.ReturnAddress // a leaf without a frame
	if !forward && !f.Signal {
		if found != FramePointer || w.jumps == maxJumps {
			return Frame{}, fmt.Errorf("stack does not grow: CFA %#x at stack pointer %#x", cfa, sp)
		}
		w.jumps++
	}
	f.CFA, f.Found = cfa, found
	if next.Registers.Known&(1<<w.arch.sp) == 0 {
		next.Registers.Set(w.arch.sp, cfa)
	}
	next.ReturnAddress = !f.Signal
	next.PC = next.Registers.Value[w.arch.pc]
	return next, nil
}

// maxJumps bounds how often Go may switch stacks (systemstack and back).
const maxJumps = 8

// fromNowhere handles a program counter that is in no code: a call through a
// bad pointer, whose return address is still on top, or the first instruction
// of a page that holds the signal trampoline alone.
func (w *walk) fromNowhere(f *Frame) (Frame, error) {
	if r := w.u.region(f.PC); r != nil {
		if next, err := w.bySignalTrampoline(f, r); err == nil {
			return next, nil
		}
	}
	if !f.ReturnAddress && !f.Signal {
		if next, err := w.returnOnTop(f, nil); err == nil {
			return next, nil
		}
	}
	return Frame{}, fmt.Errorf("no code at %#x", f.PC)
}

// fromAnonymous handles code that was made at run time.
func (w *walk) fromAnonymous(f *Frame, r *region) (Frame, error) {
	if w.code != nil {
		if size, ok := w.code(f.Lookup()); ok {
			return w.byCode(f, size)
		}
	}
	return w.withoutRules(f, r)
}
