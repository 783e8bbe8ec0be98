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
func (w *walker) leaf() (leaf, string) {
	if l, ok := w.traceLeaf(); ok {
		return l, ""
	}
	plain := &slots{r: w.r}
	saved := w.savedLeaf()
	if w.regs == nil {
		return saved, ""
	}
	pc, ok := w.regs.Get(stack.RBX)
	if !ok {
		return saved, ""
	}
	inside := w.regs.PC() >= w.vm.lo && w.regs.PC() < w.vm.hi
	for _, base := range w.bases(inside, saved.base) {
		if l, ok := w.agreed(base, pc, plain); ok {
			return l, ""
		}
	}
	if !inside && w.unsavedCall() {
		return w.spilled(plain)
	}
	return saved, ""
}

// savedLeaf is where the thread and its C frame say that it stands. Protected
// C code may lie on top, in a C frame that has no place in bytecode.
func (w *walker) savedLeaf() leaf {
	base, cf := w.r.u64(w.thread+uint64(w.vm.base)), w.cf
	for cf != 0 && w.plainC(cf, base) {
		cf = w.previous(cf)
	}
	return leaf{base: base, pc: w.r.u64(cf + w.vm.savePC), slots: &slots{r: w.r}}
}

// bases lists where the base may be: in rdx in the interpreter's own code, in
// rbp where it calls C code that does not need the thread, or in the thread.
func (w *walker) bases(inside bool, saved uint64) []uint64 {
	var found []uint64
	rbp, ok := w.regs.Get(stack.RBP)
	if rdx, known := w.regs.Get(stack.RDX); inside && known {
		found = append(found, rdx)
	}
	if ok {
		found = append(found, rbp)
	}
	if inside {
		found = append(found, saved)
	}
	return found
}

// agreed accepts a base and a bytecode address that fit each other.
func (w *walker) agreed(base, pc uint64, s *slots) (leaf, bool) {
	if !w.inStack(base) || base < w.bottom()+16 {
		return leaf{}, false
	}
	fn := tv(s.word(base - 16))
	link := s.word(base - 8)
	if fn.isFunc() && w.r.is(fn.addr(), tagFunc) {
		start := w.r.u64(fn.addr() + uint64(w.vm.funcPC))
		if w.r.u8(fn.addr()+funcFFID) != ffLua {
			// A built-in has one instruction, its own address. Else the
			// register has the caller's, which is the link as well.
			fits := link == pc || (validLink(link) && (pc == start || pc == start+4))
			return leaf{base: base, slots: s}, fits
		}
		if p := w.vm.funcProto(w.r, fn.addr()); p != nil {
			if at, ok := w.position(p, pc, link); ok {
				return leaf{base: base, pc: p.bcAddr + 4*uint64(at) + 4, slots: s}, true
			}
		}
	}
	return w.between(base, pc, s)
}

// position tells which instruction a Lua function executes when the register
// holds a bytecode address.
func (w *walker) position(p *proto, pc, link uint64) (int, bool) {
	if at := p.pos(pc); at >= 0 && (w.fetching() || at == 0 && validLink(link)) {
		return at, true // it is fetched: a jump has just gone there, or a call
	}
	if at := p.pos(pc - 4); at >= 0 {
		return at, true
	}
	if pc == link && w.tailCalling() {
		return p.onlyTailCall(), true
	}
	return 0, false
}

// fetching says that the interpreter is about to load the instruction that
// the bytecode register points to, and has not yet moved it on.
func (w *walker) fetching() bool {
	if _, sampled := w.regs.Get(stack.RDX); !sampled {
		return false
	}
	const fetch = "\x8b\x03\x0f\xb6\xcc\x0f\xb6\xe8\x48\x83\xc3\x04"
	for _, done := range [...]int{0, 2, 5, 8} {
		at := w.regs.PC() - uint64(done)
		if b := w.r.bytes(at, len(fetch)); string(b) == fetch {
			return true
		}
	}
	return false
}

// tailCalling says that the interpreter is replacing a frame by that of the
// function it ends with: then it has the caller's bytecode address already.
func (w *walker) tailCalling() bool {
	pc := w.regs.PC()
	return w.vm.tailCall != 0 && pc >= w.vm.tailCall && pc < w.vm.tailCall+tailCallSize
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
