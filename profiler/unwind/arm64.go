package unwind

import (
	"encoding/binary"

	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

// pltPush is "stp x16, x30, [sp, #-16]!", with which the first entry of an
// arm64 PLT starts. The code that binds names lazily takes the two words off
// again, and no rule tells of them.
const pltPush, pltPushed, pltWords = 0xa9bf7bf0, 16, 7

// pushedByPLT returns how far the stack pointer of the caller is above the
// frame address that the rules of a function give: glibc's lazy binding says
// that the return address lies above its own frame.
func (a *arch) pushedByPLT(function *cfi.Function) uint64 {
	if a.link < 0 {
		return 0
	}
	for i := range function.Rows {
		if ra := function.Rows[i].Rule(function.ReturnReg); ra.Op == cfi.Offset && ra.N >= 0 {
			return pltPushed
		}
	}
	return 0
}

// pushedInPLT is the same for the PLT entry itself, which has no rules.
func (w *walk) pushedInPLT(f *Frame, r *region) uint64 {
	var code [4 * pltWords]byte
	if r == nil || w.readCode(r, f.PC-uint64(len(code)), code[:]) != nil {
		return 0
	}
	for at := len(code) - 4; at >= 0; at -= 4 {
		switch insn := binary.LittleEndian.Uint32(code[at:]); {
		case insn == pltPush:
			return pltPushed
		case insn&0xfffffc1f == 0xd61f0000: // br: the end of the entry before
			return 0
		}
	}
	return 0
}

// The instructions that make and take down a frame record, without the offset.
const (
	pairMask  = 0xffc07fff
	pushPair  = 0xa9807bfd // stp x29, x30, [sp, #n]!
	storePair = 0xa9007bfd // stp x29, x30, [sp, #n]
	popPair   = 0xa8c07bfd // ldp x29, x30, [sp], #n
	loadPair  = 0xa9407bfd // ldp x29, x30, [sp, #n]

	setFrameMask = 0xffc003ff
	setFrame     = 0x910003fd // add x29, sp, #n
)

// linkHolds says whether the link register of running code without rules holds
// the return address, and how far above the stack pointer the caller's is. It
// does before the function has set its frame pointer and after it took its
// frame record down, and always in a leaf. What comes first on the way to the
// end tells.
func (w *walk) linkHolds(f *Frame, r *region) (pushed uint64, ok bool) {
	const ahead = 256
	for n := range uint64(ahead) {
		switch insn := w.insn(r, f.PC+4*n); {
		case insn&pairMask == popPair, insn&pairMask == loadPair:
			return 0, false
		case insn&setFrameMask == setFrame:
			return w.pushedRecord(f, r), true
		case insn == 0, insn&pairMask == pushPair, insn&pairMask == storePair, insn&0xfffffc1f == 0xd65f0000:
			return w.pushedInPLT(f, r), true
		}
	}
	return w.pushedInPLT(f, r), true
}

// pushedRecord returns how far a frame record was pushed right before an
// address.
func (w *walk) pushedRecord(f *Frame, r *region) uint64 {
	const back = 16
	for n := uint64(1); n <= back; n++ {
		if insn := w.insn(r, f.PC-4*n); insn&pairMask == pushPair {
			return (128 - uint64(insn>>15&0x7f)) * 8 // n is negative, of 7 bits, in words
		}
	}
	return 0
}

// insn reads an instruction; 0, which is none, where it can't be read.
func (w *walk) insn(r *region, addr uint64) uint32 {
	var b [4]byte
	if r == nil || w.readCode(r, addr, b[:]) != nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b[:])
}

// isCallARM64 knows BL, BLR and the BLR forms that authenticate.
func isCallARM64(b [4]byte) bool {
	insn := binary.LittleEndian.Uint32(b[:])
	return insn&0xfc000000 == 0x94000000 || insn&0xfffffc1f == 0xd63f0000 || insn&0xfefff800 == 0xd63f0800
}
