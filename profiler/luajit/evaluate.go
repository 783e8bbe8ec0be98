package luajit

import "math"

// evaluation computes what a trace computed, from the stack as it was when
// the trace began: a trace does not write the stack before it leaves. Inside
// of a loop only those values are known that no round changes. A loop that
// never ends because its values stay what they are, such as NaN, is just that.
type evaluation struct {
	c     *irCode
	s     reader
	base  uint64 // of the trace
	known []bool
	value []tv
	loop  int // reference of the LOOP instruction, 0: none
}

// evaluate computes the values of a trace; inLoop says that its code is
// inside its loop. It returns nil where nothing can be computed.
func evaluate(r reader, c *irCode, base uint64, inLoop bool) *evaluation {
	n := c.nins - refBias
	e := &evaluation{c: c, s: r, base: base, known: make([]bool, n), value: make([]tv, n)}
	for i := range n {
		switch c.at(refBias + i).op {
		case irRetf:
			return nil // the base moves
		case irLoop:
			e.loop = refBias + i
		}
	}
	if e.loop == 0 || !inLoop {
		end := c.nins
		if e.loop != 0 {
			end = e.loop
		}
		e.run(refBias+1, end)
		return e
	}
	e.run(refBias+1, e.loop)
	e.settle()
	return e
}

// settle drops the values that a round of the loop changes, until a round
// leaves all that remain as they are.
func (e *evaluation) settle() {
	for changed := true; changed; {
		changed = false
		for i := e.loop; i < e.c.nins; i++ {
			e.known[i-refBias] = false
		}
		e.run(e.loop, e.c.nins)
		for ref := e.c.nins - 1; ref > e.loop; ref-- {
			phi := e.c.at(ref)
			if phi.op != irPhi || !e.knows(phi.op1) {
				continue
			}
			left, _ := e.get(phi.op1)
			right, ok := e.get(phi.op2)
			if !ok || left != right {
				e.known[phi.op1-refBias] = false
				changed = true
			}
		}
	}
}

func (e *evaluation) knows(ref int) bool { _, ok := e.get(ref); return ok }

// get returns the value of a constant or an instruction.
func (e *evaluation) get(ref int) (tv, bool) {
	if ref < refBias {
		return e.c.constant(ref)
	}
	if i := ref - refBias; i < len(e.known) {
		return e.value[i], e.known[i]
	}
	return 0, false
}

func (e *evaluation) run(from, to int) {
	for ref := from; ref < to; ref++ {
		v, ok := e.compute(e.c.at(ref))
		e.value[ref-refBias], e.known[ref-refBias] = v, ok
	}
}

func (e *evaluation) compute(i irIns) (tv, bool) {
	const convNumInt, slotLimit, flagLimit = irtNum<<5 | irtInt, 256, 0x80
	if i.op > irMax && i.op1 < slotLimit && i.op2 < flagLimit {
		return e.load(i)
	}
	if i.kind != irtNum {
		return 0, false
	}
	a, ok := e.get(i.op1)
	if !ok {
		return 0, false
	}
	if i.op > irMax && i.op <= irMax+2 && i.op2 < len(rounding) {
		return round(a, i.op2)
	}
	if i.op > irMax {
		return a, i.op2 == convNumInt // integers are held as numbers here
	}
	b, ok := e.get(i.op2)
	if !ok && i.op != irNeg && i.op != irAbs {
		return 0, false
	}
	return arithmetic(i.op, a, b)
}

// load reads a slot of the stack. Only a load has two small literals.
func (e *evaluation) load(i irIns) (tv, bool) {
	const inherited = 1 // lies in a register of the trace that this one continues
	if i.op2&inherited != 0 {
		return 0, false
	}
	b := e.s.bytes(e.base-16+8*uint64(i.op1), 8)
	if b == nil {
		return 0, false
	}
	v := tv(le64(b))
	switch {
	case i.kind == irtNum, i.kind == irtInt:
		return fromFloat(math.Float64frombits(uint64(v))), v.tag() > tagInt
	case i.kind <= tagUdata:
		return v, v.tag() == i.kind
	}
	return 0, false
}

func arithmetic(op int, left, right tv) (tv, bool) {
	a, b := math.Float64frombits(uint64(left)), math.Float64frombits(uint64(right))
	var f float64
	switch op {
	case irAdd:
		f = a + b
	case irSub:
		f = a - b
	case irMul:
		f = a * b
	case irDiv:
		f = a / b
	case irMod:
		f = a - float64(math.Floor(a/b)*b)
	case irPow:
		f = math.Pow(a, b)
	case irNeg:
		f = -a
	case irAbs:
		f = math.Abs(a)
	default:
		return 0, false
	}
	return fromFloat(f), true
}

// rounding has the functions of one operand, by their numbers.
var rounding = [...]func(float64) float64{math.Floor, math.Ceil, math.Trunc, math.Sqrt}

func round(v tv, how int) (tv, bool) {
	return fromFloat(rounding[how](math.Float64frombits(uint64(v)))), true
}

// fromFloat makes a value; there is one NaN only, the others are tags.
func fromFloat(f float64) tv {
	if math.IsNaN(f) {
		return tv(0xfff8 << 48)
	}
	return tv(math.Float64bits(f))
}
