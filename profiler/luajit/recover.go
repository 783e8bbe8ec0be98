package luajit

import (
	"encoding/binary"
	"math"

	"github.com/spinguard/spinguard/profiler/stack"
)

// IR opcodes, counted from KPRI, whose number the constants nil, false and
// true show at their fixed places. Those around it keep their order.
const (
	irBase   = -9
	irRename = -2
	irKPRI   = 0
	irKINT   = 1
	irKGC    = 2
	irKPTR   = 3
	irKNUM   = 6
	irKINT64 = 7

	irtNum = 14
	irtInt = 19
)

// machine is the state of the processor inside a trace's code.
type machine struct {
	sp   uint64           // of the trace's own frame: its spill slots begin here
	regs *stack.Registers // nil: registers are not those of the trace
}

// dwarf numbers of LuaJIT's registers, which count as the processor does.
var dwarf = [...]int{
	stack.RAX, stack.RCX, stack.RDX, stack.RBX, stack.RSP, stack.RBP, stack.RSI, stack.RDI,
	stack.R8, stack.R9, stack.R10, stack.R11, stack.R12, stack.R13, stack.R14, stack.R15,
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
	kpri := vm.irKpri(r, t)
	for _, e := range snap.entries {
		addr := base - 16 + 8*uint64(e>>24)
		ref := int(e & 0xffff)
		if e&snapNoRestore != 0 {
			if addr >= s.from && s.from != 0 {
				if b := r.bytes(addr, 8); b != nil {
					s.known[addr] = tv(le64(b))
				}
			}
			continue
		}
		var v tv
		ok := false
		switch {
		case kpri < 0:
		case ref < refBias:
			v, ok = irConstant(r, t, ref, kpri)
		case liveThrough(snaps, at, e):
			v, ok = vm.irValue(r, t, ref, kpri, at, m)
		}
		if ok {
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

// irKpri returns the opcode number of primitive constants, -1 if the trace's
// constants are not as known.
func (vm *VM) irKpri(r reader, t *trace) int {
	b := r.bytes(t.ir+8*(refBias-3), 32) // true, false, nil, then the base
	if b == nil || b[4]&0x1f != tagTrue || b[12]&0x1f != tagFalse || b[20]&0x1f != tagNil {
		return -1
	}
	kpri := int(b[5])
	if int(b[13]) != kpri || int(b[21]) != kpri || int(b[29]) != kpri+irBase {
		return -1
	}
	return kpri
}

// irConstant reads a constant of the trace.
func irConstant(r reader, t *trace, ref, kpri int) (tv, bool) {
	b := r.bytes(t.ir+8*uint64(ref), 16)
	if b == nil {
		return 0, false
	}
	kind, wide := int(b[4]&0x1f), binary.LittleEndian.Uint64(b[8:])
	switch int(b[5]) - kpri {
	case irKPRI:
		return tagged(kind, addrMask), kind <= tagTrue
	case irKINT:
		return fromInt(binary.LittleEndian.Uint32(b)), true
	case irKGC:
		return tagged(kind, wide), kind >= tagStr && kind <= tagUdata
	case irKNUM:
		return tv(wide), true
	}
	return 0, false
}

func fromInt(v uint32) tv { return tv(math.Float64bits(float64(int32(v)))) }

// irValue finds a computed value in its spill slot or register. Registers for
// floating point are not sampled.
func (vm *VM) irValue(r reader, t *trace, ref, kpri, snap int, m machine) (tv, bool) {
	b := r.bytes(t.ir+8*uint64(ref), 8)
	if b == nil || ref >= t.nins {
		return 0, false
	}
	kind := int(b[4] & 0x1f)
	reg, spill := vm.irPlace(r, t, ref, kpri, snap, b[6], b[7])
	var word uint64
	switch {
	case kind <= tagTrue:
		return tagged(kind, addrMask), true
	case spill != 0:
		w := r.bytes(m.sp+4*uint64(spill), 8)
		if w == nil {
			return 0, false
		}
		word = le64(w)
	case m.regs != nil && int(reg) < len(dwarf):
		v, known := m.regs.Get(dwarf[reg])
		if !known {
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
		return tagged(kind, word), r.is(word, kind)
	}
	return 0, false
}

// irPlace follows renames: a value may move to another register at a snapshot.
// They lie at the end of the instructions; the first one counts.
func (vm *VM) irPlace(r reader, t *trace, ref, kpri, snap int, reg, spill byte) (byte, byte) {
	const most = 256
	for i, n := t.nins-1, 0; i > refBias && n < most; i, n = i-1, n+1 {
		b := r.bytes(t.ir+8*uint64(i), 8)
		if b == nil || int(b[5]) != kpri+irRename {
			break
		}
		op1, op2 := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
		if op1 == ref && op2 <= snap {
			reg, spill = b[6], b[7]
		}
	}
	return reg, spill
}
