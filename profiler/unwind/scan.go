package unwind

import (
	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

const (
	maxScans      = 3       // scans of one walk
	maxCandidates = 24      // plausible return addresses tried in one scan
	scanBytes     = 2 << 10 // how far code without rules is scanned ...
	scanRowBytes  = 8 << 10 // ... and a function whose frame address is unknown
	goodTrial     = 4       // frames after which a trial counts though it did not reach the entry
)

// scan looks for the caller of code without rules: the lowest word on the
// stack that is a plausible return address and from which rules lead on to the
// entry. Stale return addresses nearly never do.
func (w *walk) scan(f *Frame) (Frame, error) {
	return w.search(scanBytes, f, func(slot, ra uint64) (Frame, error) {
		next := w.after(f, ra)
		next.Registers.Known &= bits(w.arch.pc)
		return next, nil
	})
}

// scanRow does the same for a function whose rules need a register that is not
// known, as happens in threads that are asleep.
func (w *walk) scanRow(f *Frame, r *region, row *cfi.Row, returnReg uint8) (Frame, error) {
	ra := row.Rule(returnReg)
	if ra.Op != cfi.Offset || ra.N != -8 {
		return Frame{}, errImplausible
	}
	return w.search(scanRowBytes, f, func(slot, _ uint64) (Frame, error) {
		return w.applyRow(f, r, row, returnReg, slot+8)
	})
}

// search tries the plausible return addresses from the stack pointer upwards.
func (w *walk) search(bytes uint64, f *Frame, callerAt func(slot, ra uint64) (Frame, error)) (Frame, error) {
	if w.scans == 0 || w.arch != &amd64 {
		return Frame{}, errImplausible
	}
	w.scans--
	sp := (f.Registers.Value[w.arch.sp] + 7) &^ 7
	var best Frame
	var bestCFA uint64
	tried := 0
	for slot := sp; slot < sp+bytes && tried < maxCandidates; slot += 8 {
		ra, err := w.mem.word(slot)
		if err != nil {
			break
		}
		if !w.plausible(ra) {
			continue
		}
		tried++
		next, err := callerAt(slot, ra)
		if err != nil {
			continue
		}
		whole, good := w.trial(next, slot+8)
		if whole {
			return w.step(f, next, slot+8, Scan)
		}
		if good && bestCFA == 0 {
			best, bestCFA = next, slot+8
		}
	}
	if bestCFA == 0 {
		return Frame{}, errImplausible
	}
	return w.step(f, best, bestCFA, Scan)
}

// trial walks on from a candidate, without scans.
func (w *walk) trial(next Frame, cfa uint64) (whole, good bool) {
	t := walk{u: w.u, arch: w.arch, mem: w.mem, code: w.code, frames: make([]Frame, 0, 24)}
	next.PC, next.ReturnAddress = next.Registers.Value[w.arch.pc], true
	next.Registers.Set(w.arch.sp, cfa)
	t.run(next)
	return t.truncated == "", len(t.frames) >= goodTrial
}
