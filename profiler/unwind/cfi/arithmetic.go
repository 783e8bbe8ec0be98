package cfi

// constant pushes a fixed-size constant; odd opcodes are signed.
func (e *evaluation) constant(op uint8) {
	switch op - opConst1u {
	case 0:
		e.push(uint64(e.u8()))
	case 1:
		e.push(uint64(int64(int8(e.u8()))))
	case 2:
		e.push(uint64(e.u16()))
	case 3:
		e.push(uint64(int64(int16(e.u16()))))
	case 4:
		e.push(uint64(e.u32()))
	case 5:
		e.push(uint64(int64(int32(e.u32()))))
	default:
		e.push(e.u64())
	}
}

// Arithmetic operations, in the order of their codes.
const (
	opAnd   = 0x1a
	opDiv   = 0x1b
	opMinus = 0x1c
	opMod   = 0x1d
	opMul   = 0x1e
	opNeg   = 0x1f
	opNot   = 0x20
	opOr    = 0x21
	opPlus  = 0x22
	opShl   = 0x24
	opShr   = 0x25
	opShra  = 0x26
)

func (e *evaluation) arithmetic(op uint8) {
	switch op {
	case opAbs:
		if v := int64(e.pop()); v < 0 {
			e.push(uint64(-v))
		} else {
			e.push(uint64(v))
		}
		return
	case opNeg:
		e.push(-e.pop())
		return
	case opNot:
		e.push(^e.pop())
		return
	case opPlusConst:
		e.push(e.pop() + e.uleb())
		return
	}
	b, a := e.pop(), e.pop()
	if (op == opDiv || op == opMod) && b == 0 {
		e.fail("division by zero")
		return
	}
	e.push(operate(op, a, b))
}

func operate(op uint8, a, b uint64) uint64 {
	switch op {
	case opAnd:
		return a & b
	case opDiv:
		return uint64(int64(a) / int64(b))
	case opMinus:
		return a - b
	case opMod:
		return a % b
	case opMul:
		return a * b
	case opOr:
		return a | b
	case opPlus:
		return a + b
	case opShl:
		return a << b
	case opShr:
		return a >> b
	case opShra:
		return uint64(int64(a) >> b)
	}
	return a ^ b
}

func (e *evaluation) compare(op uint8) {
	b, a := int64(e.pop()), int64(e.pop())
	// Codes from opEq on: eq, ge, gt, le, lt, ne.
	holds := [...]bool{a == b, a >= b, a > b, a <= b, a < b, a != b}[op-opEq]
	if holds {
		e.push(1)
	} else {
		e.push(0)
	}
}
