package unwind

import (
	"bytes"
	"errors"
	"fmt"
)

var errImplausible = errors.New("implausible")

// withoutRules finds the caller of code that has no rules.
func (w *walk) withoutRules(f *Frame, r *region) (Frame, error) {
	if w.atEntry(f, r) {
		return Frame{}, errEntry
	}
	if next, err := w.bySignalTrampoline(f, r); err == nil {
		return next, nil
	}
	if !f.ReturnAddress {
		if next, err := w.returnOnTop(f, r); err == nil {
			return next, nil
		}
		if next, err := w.inPrologue(f, r); err == nil {
			return next, nil
		}
	}
	next, err := w.byFramePointer(f, r)
	if err == nil {
		return next, nil
	}
	// A frame pointer of zero is that of the first frame, or any value of code
	// that does not keep one.
	if next, err := w.scan(f); err == nil {
		return next, nil
	}
	if errors.Is(err, errEntry) || w.trying && w.nearEntry(f) {
		return Frame{}, errEntry
	}
	return Frame{}, fmt.Errorf("no rule for %s", w.u.Name(f.Lookup()))
}

// atEntry says that a frame without rules is the program's first code, which
// has no caller: musl and static programs have no rules for it.
func (w *walk) atEntry(f *Frame, r *region) bool {
	const entryCode = 64
	if r.image == nil || r.image.Entry() == 0 {
		return false
	}
	return f.Lookup()-r.bias-r.image.Entry() < entryCode
}

// nearEntry says that the return address into the program's first code lies
// not far above a frame: what has no rules is then libc's way to main, as
// musl's is.
func (w *walk) nearEntry(f *Frame) bool {
	const far = 512
	sp := (f.Registers.Value[w.arch.sp] + 7) &^ 7
	for slot := sp; slot < sp+far; slot += 8 {
		ra, err := w.mem.word(slot)
		if err != nil {
			return false
		}
		r := w.u.region(ra)
		if r != nil && w.atEntry(&Frame{PC: ra, ReturnAddress: true}, r) && w.plausible(ra) {
			return true
		}
	}
	return false
}

// returnOnTop takes the word at the stack pointer as return address: right for
// leaf code that made no frame.
func (w *walk) returnOnTop(f *Frame, r *region) (Frame, error) {
	if w.arch.link >= 0 {
		return w.byLink(f, r)
	}
	sp := f.Registers.Value[w.arch.sp]
	ra, err := w.mem.word(sp)
	if err != nil || !w.plausible(ra) {
		return Frame{}, errImplausible
	}
	return w.step(f, w.after(f, ra), sp+8, ReturnOnTop)
}

// inPrologue handles the one instruction between pushing the frame pointer and
// setting it: the return address is the second word.
func (w *walk) inPrologue(f *Frame, r *region) (Frame, error) {
	const push = 0x55
	var code [4]byte // push %rbp; mov %rsp,%rbp
	if w.arch != &amd64 || w.readCode(r, f.PC-1, code[:]) != nil || code != [4]byte{push, 0x48, 0x89, 0xe5} {
		return Frame{}, errImplausible
	}
	sp := f.Registers.Value[w.arch.sp]
	ra, err := w.mem.word(sp + 8)
	if err != nil || !w.plausible(ra) {
		return Frame{}, errImplausible
	}
	next := w.after(f, ra)
	w.restore(&next, w.arch.fp, sp)
	return w.step(f, next, sp+16, FramePointer)
}

// byLink takes the return address of an arm64 leaf from its register.
func (w *walk) byLink(f *Frame, r *region) (Frame, error) {
	ra, ok := f.Registers.Get(w.arch.link)
	pushed, holds := w.linkHolds(f, r)
	if !ok || !holds || !w.plausible(ra&w.arch.addrMask) {
		return Frame{}, errImplausible
	}
	return w.step(f, w.after(f, ra&w.arch.addrMask), f.Registers.Value[w.arch.sp]+pushed, ReturnOnTop)
}

// after returns the caller's frame with the registers that calls keep.
func (w *walk) after(f *Frame, ra uint64) Frame {
	next := Frame{Registers: f.Registers}
	next.Registers.Known &= w.arch.kept &^ (1 << w.arch.sp)
	next.Registers.Set(w.arch.pc, ra)
	return next
}

// byFramePointer follows the chain of frame pointers. A zero one marks the
// first frame.
func (w *walk) byFramePointer(f *Frame, r *region) (Frame, error) {
	const farthest = 1 << 20
	fp, ok := f.Registers.Get(w.arch.fp)
	if !ok {
		return Frame{}, errUnknown
	}
	if fp == 0 && r.image != nil && f.ReturnAddress {
		return Frame{}, errEntry
	}
	sp := f.Registers.Value[w.arch.sp]
	if fp%8 != 0 || (fp < sp || fp-sp > farthest) && r.goTab == nil {
		return Frame{}, errImplausible
	}
	saved, err := w.mem.word(fp)
	if err != nil {
		return Frame{}, err
	}
	ra, err := w.mem.word(fp + 8)
	if err != nil || !w.plausible(ra&w.arch.addrMask) {
		return Frame{}, errImplausible
	}
	next := w.after(f, ra&w.arch.addrMask)
	next.Registers.Known &= bits(w.arch.pc)
	next.Registers.Set(w.arch.fp, saved)
	next.record = w.arch.link >= 0
	return w.step(f, next, fp+16, FramePointer)
}

// bySignalTrampoline knows the code that returns from a signal handler: musl
// and some kernels have no rules for it. The interrupted registers lie in the
// ucontext above the stack pointer.
func (w *walk) bySignalTrampoline(f *Frame, r *region) (Frame, error) {
	if !w.inTrampoline(f, r) {
		return Frame{}, errImplausible
	}
	at := f.Registers.Value[w.arch.sp] + w.arch.saved
	next := Frame{}
	for i, reg := range w.arch.savedRegs {
		v, err := w.mem.word(at + uint64(i)*8)
		if err != nil {
			return Frame{}, err
		}
		next.Registers.Set(reg, v)
	}
	f.Signal = true
	return w.step(f, next, next.Registers.Value[w.arch.sp], Trampoline)
}

// inTrampoline says that a frame is that of the trampoline: the handler returns
// to its start, or it is the leaf itself, at its second instruction or within
// its system call.
func (w *walk) inTrampoline(f *Frame, r *region) bool {
	code := make([]byte, len(w.arch.trampoline))
	for _, done := range w.arch.trampolineSteps {
		if w.readCode(r, f.PC-done, code) == nil && bytes.Equal(code, w.arch.trampoline) {
			return true
		}
		if f.ReturnAddress {
			break
		}
	}
	return false
}
