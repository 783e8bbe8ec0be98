package unwind

import (
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

// LuaJIT's interpreter is one block of assembly under a single row of rules:
// the frame that all bytecode handlers share. Helpers that are reached by a
// call inside the block, and the few instructions of its entries and exits,
// run with another stack pointer; the row is wrong for them.

const (
	interpreterFrame = 80
	interpreterSize  = 8 << 10 // bytes; the block is at least that long
)

// savedRegisters is where the interpreter's frame keeps its caller's
// registers, relative to the CFA.
var savedRegisters = [...]struct {
	reg int
	off int64
}{{stack.RBP, -16}, {stack.RBX, -24}, {stack.R15, -32}, {stack.R14, -40}}

// InterpreterRange returns where the LuaJIT interpreter lies in an executable
// mapping of the process, if its image holds one: a function of over 8 KiB
// with the single row that the interpreter is known to have.
func (u *Unwinder) InterpreterRange(m procmem.Mapping) (start, end uint64, ok bool) {
	r := u.region(m.Start)
	if r == nil {
		return 0, 0, false
	}
	r.findBlob()
	return r.blobStart, r.blobEnd, r.blobEnd != 0
}

func (r *region) inBlob(addr uint64) bool {
	r.findBlob()
	return addr-r.blobStart < r.blobEnd-r.blobStart
}

func (r *region) findBlob() {
	r.blobOnce.Do(func() {
		for _, t := range r.tables {
			for i := range t.Len() {
				start, end := t.Range(i)
				if end-start < interpreterSize {
					continue
				}
				if f, ok := t.Function(start); ok && isInterpreter(f) {
					r.blobStart, r.blobEnd = start+r.bias, end+r.bias
					return
				}
			}
		}
	})
}

func isInterpreter(f *cfi.Function) bool {
	if len(f.Rows) != 1 || f.Broken || f.ReturnReg != stack.RIP {
		return false
	}
	row := &f.Rows[0]
	if row.CFA.Op != cfi.Register || row.CFA.Source != stack.RSP || row.CFA.N != interpreterFrame {
		return false
	}
	for _, s := range savedRegisters {
		if rule := row.Rule(uint8(s.reg)); rule.Op != cfi.Offset || rule.N != s.off {
			return false
		}
	}
	return true
}

// fromInterpreter finds the caller of code in the interpreter's block. The row
// holds if the word that it takes for the return address can be one. Else the
// lowest plausible return address on the stack is the caller's.
func (w *walk) fromInterpreter(f *Frame, r *region, function *cfi.Function) (Frame, error) {
	sp := f.Registers.Value[stack.RSP]
	ra, err := w.mem.word(sp + interpreterFrame - 8)
	if err == nil && w.plausible(ra) {
		return w.byRules(f, r, function)
	}
	next, scanErr := w.search(scanBytes, f, func(slot, ra uint64) (Frame, error) {
		next := w.after(f, ra)
		if !w.inLua(ra - 1) {
			w.restoreInterpreter(&next, slot+8, sp)
		}
		if slot-sp >= interpreterFrame { // left a trace: what it saved is not looked for
			next.Registers.Known &^= bits(stack.R12, stack.R13)
		}
		return next, nil
	})
	if scanErr == nil {
		return next, nil
	}
	return w.byRules(f, r, function)
}

// inLua says that an address lies in the interpreter or in a compiled trace:
// such a caller runs on the same frame, nothing was saved on the way.
func (w *walk) inLua(addr uint64) bool {
	r := w.u.region(addr)
	if r == nil {
		return false
	}
	if r.image != nil {
		return r.inBlob(addr)
	}
	if w.code == nil {
		return false
	}
	_, ok := w.code(addr)
	return ok
}

// restoreInterpreter takes the caller's registers from the interpreter's
// frame. Slots below the stack pointer are not in use yet, or not any more:
// the registers still hold the values.
func (w *walk) restoreInterpreter(next *Frame, cfa, sp uint64) {
	for _, s := range savedRegisters {
		if slot := cfa + uint64(s.off); slot >= sp {
			w.restore(next, s.reg, slot)
		}
	}
}

// restore takes a register from a word of the stack.
func (w *walk) restore(next *Frame, reg int, slot uint64) {
	v, err := w.mem.word(slot)
	if err != nil {
		next.Registers.Known &^= 1 << reg
		return
	}
	next.Registers.Set(reg, v)
}
