package lua

// instructions say how the few instructions are encoded that load a function
// before it is called.
type instructions struct {
	opBits               uint
	move, upvalue, tabup uint32
	table, field, self   uint32 // field: none in 5.3, where table has constants too
	call, tailcall       uint32
	a, b, c              func(uint32) int
	constant             func(i uint32, c int) (int, bool) // of a key
	hasField             bool
}

var instructions53 = instructions{
	opBits: 6, move: 0, upvalue: 5, tabup: 6, table: 7, self: 12, call: 36, tailcall: 37,
	a:        func(i uint32) int { return int(i >> 6 & 0xff) },
	b:        func(i uint32) int { return int(i >> 23) },
	c:        func(i uint32) int { return int(i >> 14 & 0x1ff) },
	constant: func(_ uint32, c int) (int, bool) { return c & 0xff, c&0x100 != 0 },
}

var instructions54 = instructions{
	opBits: 7, move: 0, upvalue: 9, tabup: 11, table: 12, field: 14, hasField: true, self: 20, call: 68, tailcall: 69,
	a:        func(i uint32) int { return int(i >> 7 & 0xff) },
	b:        func(i uint32) int { return int(i >> 16 & 0xff) },
	c:        func(i uint32) int { return int(i >> 24) },
	constant: func(i uint32, c int) (int, bool) { return c, i>>15&1 != 0 },
}

// lookBack is how many instructions before a call are searched for what loaded
// the function.
const lookBack = 64

// calledName names what an activation is calling, by the instruction that
// loaded the function: a global, a field, a method, a local or an upvalue.
// Empty: it can't be told.
func (vm *VM) calledName(r *reader, a activation) string {
	in := vm.instructions
	call, ok := a.proto.instruction(r, a.pc)
	op := call & (1<<in.opBits - 1)
	if !ok || op != in.call && op != in.tailcall {
		return ""
	}
	register := in.a(call)
	for pc := a.pc - 1; pc >= max(0, a.pc-lookBack); pc-- {
		i, ok := a.proto.instruction(r, pc)
		if !ok {
			return ""
		}
		op := i & (1<<in.opBits - 1)
		if op == in.call && in.a(i) <= register {
			return "" // it is what another function returned
		}
		if in.a(i) == register {
			if name, known := vm.loaded(r, a, i, op, pc); known {
				return name
			}
		}
	}
	return ""
}

// loaded names what an instruction loads; known is false if it loads nothing.
func (vm *VM) loaded(r *reader, a activation, i, op uint32, pc int) (name string, known bool) {
	in := vm.instructions
	switch {
	case op == in.move:
		return vm.localName(r, a.proto, in.b(i), pc), true
	case op == in.upvalue:
		return vm.upvalueName(r, a.proto, in.b(i)), true
	case op == in.tabup:
		k, constant := in.constant(i, in.c(i))
		if in.hasField || constant {
			return vm.constantName(r, a.proto, k), true
		}
	case op == in.table && !in.hasField, op == in.self:
		if k, constant := in.constant(i, in.c(i)); constant {
			return vm.constantName(r, a.proto, k), true
		}
	case op == in.field && in.hasField:
		return vm.constantName(r, a.proto, in.c(i)), true
	default:
		return "", false
	}
	return "", true
}

const maxName = 80

func (vm *VM) constantName(r *reader, p *proto, k int) string {
	if k >= i32(p.raw, vm.sizeK) {
		return ""
	}
	b := r.block(u64(p.raw, vm.k)+16*uint64(k), 16)
	if b == nil || b[8]&^collectable != typeString {
		return ""
	}
	name, _, _ := r.text(u64(b, 0), maxName)
	return name
}

func (vm *VM) upvalueName(r *reader, p *proto, n int) string {
	if n >= i32(p.raw, vm.sizeUps) {
		return ""
	}
	b := r.block(u64(p.raw, vm.ups)+uint64(n*vm.upSize), 8)
	name, _, _ := r.text(u64(b, 0), maxName)
	return name
}

func (vm *VM) localName(r *reader, p *proto, register, pc int) string {
	for i, v := range vm.visible(r, p, pc) {
		if i == register {
			return v
		}
	}
	return ""
}
