package luajit

import "github.com/spinguard/spinguard/profiler/stack"

// machine is the state of the processor inside a trace's code.
type machine struct {
	sp   uint64           // of the trace's own frame: its spill slots begin here
	off  uint64           // into the trace's code
	regs *stack.Registers // nil: registers are not those of the trace
}

// dwarf numbers of LuaJIT's registers, which count as the processor does.
var dwarf = [...]int{
	stack.RAX, stack.RCX, stack.RDX, stack.RBX, stack.RSP, stack.RBP, stack.RSI, stack.RDI,
	stack.R8, stack.R9, stack.R10, stack.R11, stack.R12, stack.R13, stack.R14, stack.R15,
}

// recovery finds the values of one trace at one instant.
type recovery struct {
	r    reader
	c    *irCode
	e    *evaluation
	snap int
	m    machine
}

// overlay lays the slots that a snapshot restores over the stack. base is the
// trace's base. Slots whose value can't be found are unknown; slots above the
// trace's own frame are in memory only by chance.
func (vm *VM) overlay(r reader, t *trace, snaps []snapshot, at int, base uint64, m machine) *slots {
	s := &slots{r: r, known: map[uint64]tv{}, unknown: map[uint64]bool{}}
	snap := snaps[at]
	if snap.delta > 0 {
		s.from = base + 8*snap.delta - 16
	}
	rec := recovery{r: r, c: vm.irOf(r, t), snap: at, m: m}
	if rec.c != nil {
		rec.e = evaluate(r, rec.c, base, t.mcloop != 0 && m.off >= t.mcloop)
	}
	for _, e := range snap.entries {
		addr := base - 16 + 8*uint64(e>>24)
		if e&snapNoRestore != 0 {
			if b := r.bytes(addr, 8); b != nil {
				s.known[addr] = tv(le64(b))
			}
			continue
		}
		if v, ok := rec.value(int(e&0xffff), liveThrough(snaps, at, e)); ok {
			s.known[addr] = v
		} else {
			s.unknown[addr] = true
		}
	}
	return s
}

// liveThrough says that the next snapshot needs the same value in the same
// slot: then nothing has overwritten its register in between.
func liveThrough(snaps []snapshot, at int, entry uint32) bool {
	if at+1 >= len(snaps) {
		return true
	}
	for _, e := range snaps[at+1].entries {
		if e>>24 == entry>>24 {
			return e&0xffff == entry&0xffff
		}
	}
	return false
}

// value finds a value among the constants, by computing it, or in the place
// that the compiler gave it.
func (rec recovery) value(ref int, live bool) (tv, bool) {
	switch {
	case rec.c == nil:
		return 0, false
	case ref < refBias:
		return rec.c.constant(ref)
	}
	if rec.e != nil {
		if v, ok := rec.e.get(ref); ok {
			return v, true
		}
	}
	if !live {
		return 0, false
	}
	return rec.held(ref)
}

// held reads a value's spill slot or register. Registers for floating point
// are not sampled.
func (rec recovery) held(ref int) (tv, bool) {
	kind := rec.c.at(ref).kind
	reg, spill := rec.c.place(ref, rec.snap)
	var word uint64
	switch {
	case kind <= tagTrue:
		return tagged(kind, addrMask), true
	case spill != 0:
		b := rec.r.bytes(rec.m.sp+4*uint64(spill), 8)
		if b == nil {
			return 0, false
		}
		word = le64(b)
	case rec.m.regs != nil && int(reg) < len(dwarf):
		v, ok := rec.m.regs.Get(dwarf[reg])
		if !ok {
			return 0, false
		}
		word = v
	default:
		return 0, false
	}
	switch {
	case kind == irtInt:
		return fromInt(uint32(word)), true
	case kind == irtNum:
		return tv(word), spill != 0
	case kind >= tagStr && kind <= tagUdata:
		// What a register holds must be the object that the trace says.
		return tagged(kind, word), rec.r.is(word, kind)
	}
	return 0, false
}
