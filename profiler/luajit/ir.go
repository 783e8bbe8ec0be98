package luajit

import (
	"encoding/binary"
	"math"
)

// IR opcodes, counted from KPRI, whose number the constants nil, false and
// true show at their fixed places. Those around it keep their order in all
// builds with 64-bit references.
const (
	irRetf   = -11
	irBase   = -9
	irLoop   = -5
	irPhi    = -3
	irRename = -2
	irKPRI   = 0
	irKINT   = 1
	irKGC    = 2
	irKNUM   = 6
	irAdd    = 19
	irSub    = 20
	irMul    = 21
	irDiv    = 22
	irMod    = 23
	irPow    = 24
	irNeg    = 25
	irAbs    = 26
	irMax    = 29 // of min, max; 30 with an older atan2 before them

	irtNum = 14
	irtInt = 19
)

// irCode is the IR of a trace: constants below refBias, instructions above.
type irCode struct {
	nk, nins int
	kpri     int
	b        []byte
}

// irIns is one IR instruction.
type irIns struct {
	op1, op2   int
	kind, op   int // op counts from KPRI
	guard      bool
	reg, spill byte
	literal    uint32 // op1 and op2 as one
}

// irOf reads the IR of a trace, nil if it is not as known.
func (vm *VM) irOf(r reader, t *trace) *irCode {
	const most = 1 << 15
	if t.nk < refBias-most || t.nk > refBias-3 || t.nins <= refBias || t.nins > refBias+most {
		return nil
	}
	c := &irCode{nk: t.nk, nins: t.nins, b: r.bytes(t.ir+8*uint64(t.nk), 8*(t.nins-t.nk))}
	if c.b == nil {
		return nil
	}
	yes, no, null, base := c.at(refBias-3), c.at(refBias-2), c.at(refBias-1), c.at(refBias)
	if yes.kind != tagTrue || no.kind != tagFalse || null.kind != tagNil || yes.op != no.op || no.op != null.op {
		return nil
	}
	c.kpri = yes.op
	return c.checked(base.op)
}

func (c *irCode) checked(baseOp int) *irCode {
	if baseOp != c.kpri+irBase {
		return nil
	}
	return c
}

// at returns an instruction; one that does not exist is empty.
func (c *irCode) at(ref int) irIns {
	off := 8 * (ref - c.nk)
	if off < 0 || off+8 > len(c.b) {
		return irIns{op: math.MinInt32}
	}
	b := c.b[off:]
	le := binary.LittleEndian
	return irIns{
		op1: int(le.Uint16(b)), op2: int(le.Uint16(b[2:])), literal: le.Uint32(b),
		kind: int(b[4] & 0x1f), guard: b[4]&0x80 != 0, op: int(b[5]) - c.kpri, reg: b[6], spill: b[7],
	}
}

// constant returns the value of a constant.
func (c *irCode) constant(ref int) (tv, bool) {
	i := c.at(ref)
	wide := uint64(0)
	if off := 8 * (ref + 1 - c.nk); off >= 0 && off+8 <= len(c.b) {
		wide = le64(c.b[off:])
	}
	switch i.op {
	case irKPRI:
		return tagged(i.kind, addrMask), i.kind <= tagTrue
	case irKINT:
		return fromInt(i.literal), true
	case irKGC:
		return tagged(i.kind, wide&addrMask), i.kind >= tagStr && i.kind <= tagUdata
	case irKNUM:
		return tv(wide), true
	}
	return 0, false
}

// place says in which register and spill slot a value lies at a snapshot. The
// renames lie at the end of the instructions; the first one counts.
func (c *irCode) place(ref, snap int) (reg, spill byte) {
	i := c.at(ref)
	reg, spill = i.reg, i.spill
	for at := c.nins - 1; at > refBias; at-- {
		n := c.at(at)
		if n.op != irRename {
			break
		}
		if n.op1 == ref && n.op2 <= snap {
			reg, spill = n.reg, n.spill
		}
	}
	return reg, spill
}

func fromInt(v uint32) tv { return tv(math.Float64bits(float64(int32(v)))) }
