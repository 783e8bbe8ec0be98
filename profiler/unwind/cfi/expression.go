package cfi

import (
	"errors"
	"fmt"
)

const (
	maxSteps = 512
	maxStack = 64
)

// Context is what an expression may look at.
type Context interface {
	// Register returns a register of the frame.
	Register(n int) (uint64, bool)
	// Load reads a word of 1, 2, 4 or 8 bytes of the process.
	Load(addr uint64, size int) (uint64, error)
	// Bias is what leads from a vaddr to the process.
	Bias() uint64
}

// Evaluate runs a DWARF expression with a value already on its stack, and
// returns the top of the stack. The number of steps is bounded.
func Evaluate(expr []byte, initial uint64, ctx Context) (uint64, error) {
	e := evaluation{reader: reader{data: expr}, ctx: ctx}
	e.push(initial)
	for steps := 0; e.more() && e.err == nil; steps++ {
		if steps == maxSteps {
			return 0, fmt.Errorf("expression: over %d steps", maxSteps)
		}
		e.step()
	}
	if e.bad && e.err == nil {
		e.err = errors.New("expression: cut")
	}
	return e.pop(), e.err
}

type evaluation struct {
	reader
	ctx   Context
	stack [maxStack]uint64
	depth int
	err   error
}

func (e *evaluation) push(v uint64) {
	if e.depth == maxStack {
		e.fail("stack overflow")
		return
	}
	e.stack[e.depth] = v
	e.depth++
}

func (e *evaluation) pop() uint64 {
	if e.depth == 0 {
		e.fail("stack underflow")
		return 0
	}
	e.depth--
	return e.stack[e.depth]
}

// pick copies the n-th value from the top.
func (e *evaluation) pick(n int) {
	if n >= e.depth {
		e.fail("stack underflow")
		return
	}
	e.push(e.stack[e.depth-1-n])
}

func (e *evaluation) fail(text string) {
	if e.err == nil {
		e.err = fmt.Errorf("expression: %s at byte %d", text, e.off)
	}
}

// Operations of DWARF expressions (DW_OP) that make sense for a frame.
const (
	opAddr      = 0x03
	opDeref     = 0x06
	opConst1u   = 0x08
	opConst8s   = 0x0f
	opConstu    = 0x10
	opConsts    = 0x11
	opDup       = 0x12
	opDrop      = 0x13
	opOver      = 0x14
	opPick      = 0x15
	opSwap      = 0x16
	opRot       = 0x17
	opAbs       = 0x19
	opXor       = 0x27
	opPlusConst = 0x23
	opBra       = 0x28
	opEq        = 0x29
	opNe        = 0x2e
	opSkip      = 0x2f
	opLit0      = 0x30
	opLit31     = 0x4f
	opReg0      = 0x50
	opReg31     = 0x6f
	opBreg0     = 0x70
	opBreg31    = 0x8f
	opBregx     = 0x92
	opDerefSize = 0x94
	opNop       = 0x96
)

func (e *evaluation) step() {
	op := e.u8()
	switch {
	case op >= opLit0 && op <= opLit31:
		e.push(uint64(op - opLit0))
	case op >= opReg0 && op <= opReg31:
		e.register(int(op-opReg0), 0)
	case op >= opBreg0 && op <= opBreg31:
		e.register(int(op-opBreg0), e.sleb())
	case op >= opConst1u && op <= opConst8s:
		e.constant(op)
	case op >= opAbs && op <= opXor:
		e.arithmetic(op)
	case op >= opEq && op <= opNe:
		e.compare(op)
	default:
		e.other(op)
	}
}

func (e *evaluation) other(op uint8) {
	switch op {
	case opAddr:
		e.push(e.u64() + e.ctx.Bias())
	case opDeref:
		e.load(8)
	case opDerefSize:
		e.load(int(e.u8()))
	case opConstu:
		e.push(e.uleb())
	case opConsts:
		e.push(uint64(e.sleb()))
	case opDup:
		e.pick(0)
	case opDrop:
		e.pop()
	case opOver:
		e.pick(1)
	case opPick:
		e.pick(int(e.u8()))
	case opSwap:
		a, b := e.pop(), e.pop()
		e.push(a)
		e.push(b)
	case opRot:
		a, b, c := e.pop(), e.pop(), e.pop()
		e.push(a)
		e.push(c)
		e.push(b)
	case opBra, opSkip:
		e.jump(op)
	case opBregx:
		reg := e.uleb()
		e.register(int(min(reg, Registers)), e.sleb())
	case opNop:
	default:
		e.fail(fmt.Sprintf("operation %#x", op))
	}
}

func (e *evaluation) register(n int, add int64) {
	v, ok := e.ctx.Register(n)
	if !ok {
		e.fail(fmt.Sprintf("register %d is unknown", n))
	}
	e.push(v + uint64(add))
}

func (e *evaluation) load(size int) {
	addr := e.pop()
	if e.err != nil {
		return
	}
	v, err := e.ctx.Load(addr, size)
	if err != nil {
		e.err = err
	}
	e.push(v)
}

// jump moves within the expression; steps are counted, so loops end.
func (e *evaluation) jump(op uint8) {
	by := int(int16(e.u16()))
	if op == opBra && e.pop() == 0 {
		return
	}
	if to := e.off + by; to >= 0 && to <= len(e.data) {
		e.off = to
		return
	}
	e.fail("jump out of the expression")
}
