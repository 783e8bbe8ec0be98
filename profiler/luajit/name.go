package luajit

import (
	"fmt"
	"path"

	"github.com/spinguard/spinguard/profiler/stack"
)

// frame makes the frame of a spot that up called.
func (w *walker) frame(here, up spot, down link) stack.Frame {
	if here.proto == nil {
		return stack.Frame{Kind: stack.Builtin, Function: w.builtinName(here, up)}
	}
	f := stack.Frame{
		Kind: stack.Lua, Function: w.functionName(here, up, down), File: here.proto.file(),
		StartLine: max(here.proto.firstline, 0), Values: w.values(here),
	}
	if here.trace {
		f.Kind = stack.Trace
	}
	if here.pos >= 0 {
		f.Line = here.proto.line(here.pos)
	}
	return f
}

// functionName names a Lua function by the instruction that called it, as
// Lua's tracebacks do, unless that name belongs to another function: a
// function that ended in a tail call has left its name to its successor.
func (w *walker) functionName(here, up spot, down link) string {
	if here.proto.isMain() {
		return "main chunk"
	}
	called := w.calledName(up)
	if called.name != "" && !w.refutes(called, here) {
		return called.name
	}
	if down.cont && called.meta != "" {
		return called.meta
	}
	if name := w.ownName(here, up); name != "" {
		return name
	}
	return fmt.Sprintf("function <%s:%d>", path.Base(here.proto.file()), max(here.proto.firstline, 0))
}

// refutes says that the named thing is known to be another function.
func (w *walker) refutes(c called, here spot) bool {
	if !c.known || here.fn == 0 {
		return false
	}
	return !w.sameFunction(c.value, here)
}

// sameFunction says that the value is the function, or another closure of it.
func (w *walker) sameFunction(v tv, here spot) bool {
	if !v.isFunc() {
		return false
	}
	if v.addr() == here.fn {
		return true
	}
	return w.r.is(v.addr(), tagFunc) && w.r.u8(v.addr()+funcFFID) == ffLua &&
		w.r.u64(v.addr()+uint64(w.vm.funcPC)) == here.proto.bcAddr
}

// ownName looks for a variable that holds the function: an upvalue of its
// own, as every recursive local function has, one of its caller's variables,
// or a field of a module.
func (w *walker) ownName(here, up spot) string {
	for _, s := range [...]spot{here, up} {
		if s.proto == nil || s.fn == 0 {
			continue
		}
		for i, name := range s.proto.upvalues {
			if v, ok := w.upvalue(s, i); ok && name != "" && w.sameFunction(v, here) {
				return name
			}
		}
	}
	if up.proto != nil && up.pos >= 0 {
		for i, variable := range up.proto.visible(up.pos) {
			if v, ok := up.slots.get(up.base + 8*uint64(i)); ok && w.sameFunction(v, here) {
				return variable.name
			}
		}
	}
	if here.fn == 0 {
		return ""
	}
	return w.vm.names.lookup(w.vm, w.r, here.fn)
}

// builtinName names a function that is not written in Lua by where the VM's
// modules hold it, else by how it was called.
func (w *walker) builtinName(here, up spot) string {
	if name := w.vm.names.lookup(w.vm, w.r, here.fn); name != "" {
		return name
	}
	if c := w.calledName(up); c.name != "" && (!c.known || c.value.addr() == here.fn) {
		return c.path
	}
	switch id := w.r.u8(here.fn + funcFFID); id {
	case ffLua:
		return "function without bytecode"
	case ffC:
		return fmt.Sprintf("C function %#x", w.r.u64(here.fn+uint64(w.vm.funcPC)+8))
	default:
		return fmt.Sprintf("builtin#%d", id)
	}
}
