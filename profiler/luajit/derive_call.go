package luajit

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

// deriveCall follows the code by which C enters the interpreter (lj_vm_call):
// it saves the thread and the C frame on the machine stack, loads the dispatch
// table, and notes the running thread and the state in the global state. Its
// fall-through path touches nearly every field that a walk needs.
func deriveCall(l *layout, code []byte) error {
	for _, with := range []string{"55 53 41 57 41 56 48 83 ec ??", "55 53 41 57 41 56 41 55 41 54 48 83 ec ??"} {
		for _, at := range find(code, with) {
			seen := &callSeen{layout: layout{frameSize: 8}}
			follow(code[at:], seen.step)
			if seen.complete() {
				seen.lo, seen.hi, seen.handlers, seen.exdata = l.lo, l.hi, l.handlers, -1
				*l = seen.layout
				l.vmstate += l.dispatch
				l.curL += l.dispatch
				return deriveThreadStack(l, code)
			}
		}
	}
	return unsupported("entry of the interpreter: not as known")
}

// callSeen collects what the instructions of lj_vm_call say. The first use of
// a register as a base decides whose field it is: rdi and rbp hold the thread
// up to the call, then rbp holds the function.
type callSeen struct {
	layout
	haveVM, haveL, haveNres, haveCF, called bool
}

func (s *callSeen) complete() bool {
	return s.haveVM && s.haveL && s.haveNres && s.haveCF && s.called && s.dispatch > 0 && s.curL != 0 &&
		s.glref > 0 && s.base > 0 && s.top > 0 && s.cframe > 0 && s.funcPC > 0 && s.savePC > 0
}

func (s *callSeen) step(i x86asm.Inst) bool {
	switch i.Op {
	case x86asm.PUSH:
		s.frameSize += 8
	case x86asm.SUB:
		if imm, ok := i.Args[1].(x86asm.Imm); ok && i.Args[0] == x86asm.RSP {
			s.frameSize += uint64(imm)
		}
	case x86asm.ADD:
		if imm, ok := i.Args[1].(x86asm.Imm); ok && i.Args[0] == x86asm.R14 {
			s.dispatch = int64(imm)
		}
	case x86asm.JMP:
		m, ok := i.Args[0].(x86asm.Mem)
		s.called = ok && m.Base == x86asm.R14
		return false
	case x86asm.MOV:
		if m, ok := i.Args[0].(x86asm.Mem); ok {
			s.store(m, i.Args[1])
		} else if m, ok := i.Args[1].(x86asm.Mem); ok {
			s.load(i.Args[0], m)
		}
	}
	return true
}

func (s *callSeen) store(m x86asm.Mem, from x86asm.Arg) {
	switch {
	case m.Base == x86asm.RSP && from == x86asm.RDI:
		s.saveL, s.haveL = uint64(m.Disp), true
	case m.Base == x86asm.RSP && from == x86asm.EDX:
		s.saveNres, s.haveNres = uint64(m.Disp), true
	case m.Base == x86asm.RSP && from == x86asm.R15:
		s.saveCF, s.haveCF = uint64(m.Disp), true
	case m.Base == x86asm.RSP && from == x86asm.RBP:
		s.savePC = uint64(m.Disp)
	case m.Base == x86asm.RBP && from == x86asm.RSP:
		s.cframe = m.Disp
	case m.Base == x86asm.R14 && from == x86asm.RBP:
		s.curL = m.Disp
	case m.Base == x86asm.R14:
		if imm, ok := from.(x86asm.Imm); ok && int32(imm) == -1 {
			s.vmstate, s.haveVM = m.Disp, true
		}
	}
}

func (s *callSeen) load(to x86asm.Arg, m x86asm.Mem) {
	if m.Base != x86asm.RBP {
		return
	}
	switch to {
	case x86asm.R14:
		s.glref = m.Disp
	case x86asm.RDX:
		s.base = m.Disp
	case x86asm.RAX:
		s.top = m.Disp
	case x86asm.RBX:
		s.funcPC = m.Disp
	}
}

// deriveThreadStack finds lua_State.stack where lj_vm_cpcall saves the top of
// the stack relative to its start: mov r15, [rbp+x]; sub r15, [rbp+top].
func deriveThreadStack(l *layout, code []byte) error {
	for _, i := range find(code, "4c 8b 7d ?? 4c 2b 7d ??") {
		if int64(int8(code[i+7])) == l.top {
			l.stack = int64(int8(code[i+3]))
			return nil
		}
	}
	return unsupported("stack of a thread: not seen in the interpreter")
}

// follow decodes straight-line code until step returns false.
func follow(code []byte, step func(x86asm.Inst) bool) {
	const most = 64
	endbr := []byte{0xf3, 0x0f, 0x1e, 0xfa}
	for n := 0; n < most && len(code) > 0; n++ {
		if bytes.HasPrefix(code, endbr) {
			code = code[len(endbr):]
			continue
		}
		i, err := x86asm.Decode(code, 64)
		if err != nil || !step(i) {
			return
		}
		code = code[i.Len:]
	}
}
