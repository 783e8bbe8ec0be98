package luajit

import "github.com/spinguard/spinguard/profiler/stack"

// leaf says where a thread is executing.
type leaf struct {
	base  uint64 // of the innermost frame
	pc    uint64 // behind the instruction that it executes; 0: unknown
	trace int
	root  uint64 // base of the trace's own frame; frames from here up are in the trace
	slots *slots
}

// leaf finds the innermost frame. In a trace it is known by the trace's
// snapshots. In the interpreter it lies in registers, and in C code in the
// thread, where the interpreter saved it before the call, as it nearly always
// does. What registers say counts only if function and bytecode agree.
func (w *walker) leaf() leaf {
	if l, ok := w.traceLeaf(); ok {
		return l
	}
	plain := &slots{r: w.r}
	saved := w.r.u64(w.thread + uint64(w.vm.base))
	savedPC := w.r.u64(w.cf + w.vm.savePC)
	if w.regs != nil {
		pc, havePC := w.regs.Get(stack.RBX)
		inside := w.regs.PC() >= w.vm.lo && w.regs.PC() < w.vm.hi
		for _, n := range w.baseRegisters(inside) {
			base, ok := w.regs.Get(n)
			if ok && havePC {
				if l, ok := w.agreed(base, pc, plain); ok {
					return l
				}
			}
		}
		if havePC && inside {
			if l, ok := w.agreed(saved, pc, plain); ok {
				return l
			}
		}
	}
	return leaf{base: saved, pc: savedPC, slots: plain}
}

// baseRegisters lists where the base may be: rdx in the interpreter's own
// code, rbp where it calls C code that is known not to need the thread.
func (w *walker) baseRegisters(inside bool) []int {
	if inside {
		return []int{stack.RDX, stack.RBP}
	}
	return []int{stack.RBP}
}

// agreed accepts a base and a bytecode address that fit each other.
func (w *walker) agreed(base, pc uint64, s *slots) (leaf, bool) {
	if !w.inStack(base) || base < w.bottom()+16 {
		return leaf{}, false
	}
	fn := tv(s.word(base - 16))
	link := s.word(base - 8)
	if fn.isFunc() && w.r.is(fn.addr(), tagFunc) {
		if w.r.u8(fn.addr()+funcFFID) != ffLua {
			// A built-in does not run bytecode: the register still has the
			// caller's, which is the link as well.
			return leaf{base: base, slots: s}, link == pc
		}
		if p := w.vm.funcProto(w.r, fn.addr()); p != nil && p.pos(pc-4) >= 0 {
			return leaf{base: base, pc: pc, slots: s}, true
		} else if p != nil && pc == p.bcAddr && validLink(link) {
			return leaf{base: base, pc: pc + 4, slots: s}, true // just called
		}
	}
	return w.between(base, pc, s)
}

func validLink(link uint64) bool { return link != 0 && link <= addrMask }

// between recognises the instants at which a call has not yet written the
// new frame, or a return has already overwritten it: the bytecode address is
// the caller's, and so tells where the caller's frame lies.
func (w *walker) between(base, pc uint64, s *slots) (leaf, bool) {
	if pc&3 != 0 || pc < 4 || pc > addrMask {
		return leaf{}, false
	}
	call := ins(w.r.u32(pc - 4))
	caller := base - 8*(2+uint64(call.a()))
	if !isCall(call.op()) || !w.inStack(caller) || caller < w.bottom()+16 {
		return leaf{}, false
	}
	fn := tv(s.word(caller - 16))
	if !fn.isFunc() {
		return leaf{}, false
	}
	p := w.vm.funcProto(w.r, fn.addr())
	return leaf{base: caller, pc: pc, slots: s}, p != nil && p.pos(pc-4) >= 0
}
