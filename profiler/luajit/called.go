package luajit

// called is what the bytecode of a caller says of what it called.
type called struct {
	name  string // last part: "find"
	path  string // with what it was taken from, where that has a name: "string.find"
	meta  string // the metamethod that an instruction stands for
	value tv     // what the name holds now
	known bool   // value could be found
}

// calledName derives the name of what the instruction at a spot calls.
func (w *walker) calledName(up spot) called {
	if up.proto == nil || up.pos < 0 {
		return called{}
	}
	i := up.proto.bc[up.pos]
	if !isCall(i.op()) {
		return called{meta: metamethod(i.op())}
	}
	slot := i.a()
	if i.op() == opITERC || i.op() == opITERN {
		slot -= 3
	}
	const deepest = 4
	return w.slotName(up, up.pos, slot, deepest)
}

// slotName says what a slot holds at an instruction: the local variable that
// lies there, or what the code before has loaded into it.
func (w *walker) slotName(up spot, pos, slot, depth int) called {
	p := up.proto
	for depth > 0 && slot >= 0 {
		depth--
		if name := p.varName(pos, slot); name != "" {
			v, ok := up.slots.get(up.base + 8*uint64(slot))
			return called{name: name, path: name, value: v, known: ok && up.base != 0}
		}
		pos = setter(p, pos, slot)
		if pos < 0 {
			return called{}
		}
		i := p.bc[pos]
		switch i.op() {
		case opMOV:
			slot = i.d()
			continue
		case opGGET:
			return w.globalName(up, i)
		case opTGETS:
			return w.fieldName(up, pos, i, depth)
		case opUGET:
			return w.upvalueName(up, i.d())
		}
		return called{}
	}
	return called{}
}

// setter finds the instruction before pos that set the slot, -1 if that is
// not certain.
func setter(p *proto, pos, slot int) int {
	for pos--; pos > 0; pos-- {
		i := p.bc[pos]
		switch op := i.op(); {
		case setsFromA(op):
			if slot >= i.a() && (op != opKNIL || slot <= i.d()) {
				return -1
			}
		case setsA(op) && i.a() == slot:
			return pos
		}
	}
	return -1
}

// constantName reads a string constant of the prototype.
func (w *walker) constantName(p *proto, d int) string {
	s, _, _ := w.r.str(p.constant(d), 64)
	return printable(s, 64)
}

func (w *walker) globalName(up spot, i ins) called {
	c := called{name: w.constantName(up.proto, i.d())}
	c.path = c.name
	if up.fn != 0 {
		c.value, c.known = w.r.field(w.r.u64(up.fn+objEnv), c.name)
	}
	return c
}

func (w *walker) fieldName(up spot, pos int, i ins, depth int) called {
	c := called{name: w.constantName(up.proto, i.c())}
	c.path = c.name
	from := w.slotName(up, pos, i.b(), depth)
	if from.path != "" {
		c.path = from.path + "." + c.name
	}
	if from.known && from.value.isTable() {
		c.value, c.known = w.r.field(from.value.addr(), c.name)
	}
	return c
}

func (w *walker) upvalueName(up spot, n int) called {
	var c called
	if n < len(up.proto.upvalues) {
		c.name = up.proto.upvalues[n]
		c.path = c.name
	}
	if up.fn != 0 {
		c.value, c.known = w.upvalue(up, n)
	}
	return c
}

// upvalue reads the n-th upvalue of a Lua function.
func (w *walker) upvalue(s spot, n int) (tv, bool) {
	if n >= int(w.r.u8(s.fn+funcNUpv)) {
		return 0, false
	}
	uv := w.r.u64(s.fn + uint64(w.vm.funcPC) + 8 + 8*uint64(n))
	if !w.r.is(uv, tagUpval) {
		return 0, false
	}
	at := w.r.u64(uv + uvValue)
	if at == 0 || at&7 != 0 {
		return 0, false
	}
	return s.slots.get(at)
}
