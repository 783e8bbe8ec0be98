package unwind

import (
	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

const (
	maxScans      = 3       // scans of one walk
	maxCandidates = 24      // plausible return addresses tried in one scan
	scanBytes     = 4 << 10 // how far code without rules is scanned ...
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
	var good, entry candidate
	tried, ruledCode := 0, false
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
		c := candidate{next, slot + 8}
		switch whole, ruled, long := w.trial(c); {
		case whole && ruled:
			return w.step(f, c.next, c.cfa, Scan)
		case whole && entry.cfa == 0 && !ruledCode:
			entry = c
		case long && good.cfa == 0:
			good = c
		}
		ruledCode = ruledCode || w.hasRules(ra-1)
	}
	for _, c := range []candidate{good, entry} {
		if c.cfa != 0 {
			return w.step(f, c.next, c.cfa, Scan)
		}
	}
	return Frame{}, errImplausible
}

// candidate is a caller that a scan tries.
type candidate struct {
	next Frame
	cfa  uint64
}

// trial walks on from a candidate, without scans. It says whether that led to
// the entry, whether rules had a part in it, and whether it led far. The way
// from the program's first code to its entry needs no rules, so nearly every
// stack has a candidate that is whole and not ruled: it would leave out all
// others, and is taken only where no code with rules lies between.
func (w *walk) trial(c candidate) (whole, ruled, long bool) {
	t := walk{u: w.u, arch: w.arch, mem: w.mem, code: w.code, frames: make([]Frame, 0, 24), trying: true}
	c.next.PC, c.next.ReturnAddress = c.next.Registers.Value[w.arch.pc], true
	c.next.Registers.Set(w.arch.sp, c.cfa)
	t.run(c.next)
	for i := range t.frames {
		ruled = ruled || t.frames[i].CFA != 0
	}
	return t.truncated == "", ruled, len(t.frames) >= goodTrial
}

func (w *walk) hasRules(addr uint64) bool {
	r := w.u.region(addr)
	if r == nil || r.image == nil {
		return false
	}
	_, ok := r.function(addr)
	return ok
}
