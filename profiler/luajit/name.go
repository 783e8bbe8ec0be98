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
	name, sure := w.functionName(here, up, down)
	if !sure {
		w.pending = append(w.pending, pendingName{len(w.out.Segments) - 1, w.inSegment(), here})
	}
	f := stack.Frame{
		Kind: stack.Lua, Function: name, File: here.proto.file(),
		StartLine: max(here.proto.firstline, 0), Values: w.variables(here),
	}
	if here.trace {
		f.Kind = stack.Trace
	}
	if here.pos >= 0 {
		f.Line, f.Loops = here.proto.line(here.pos), here.proto.loopLines(here.pos)
	}
	return f
}

// functionName names a Lua function by the instruction that called it, as
// Lua's tracebacks do, unless that name belongs to another function: a
// function that ended in a tail call has left its name to its successor.
// Where no name is found, it returns the place of the definition and false.
func (w *walker) functionName(here, up spot, down link) (string, bool) {
	if here.proto.isMain() {
		return "main chunk", true
	}
	called := w.calledName(up)
	if called.name != "" && !w.refutes(called, here) {
		return called.name, true
	}
	if down.cont && called.meta != "" {
		return called.meta, true
	}
	if name := w.ownName(here, here); name != "" {
		return name, true
	}
	if name := w.ownName(here, up); name != "" {
		return name, true
	}
	if name := w.tailCalled(called, here, (*walker).ownName).name; name != "" {
		return name, true
	}
	if here.fn != 0 {
		if name := w.vm.names.lookup(w.vm, here.fn); name != "" {
			return name, true
		}
	}
	return fmt.Sprintf("function <%s:%d>", path.Base(here.proto.file()), max(here.proto.firstline, 0)), false
}

// pendingName is a frame without a name: C called its function, or a tail
// call did. Most often a variable of a frame further down holds the function.
type pendingName struct {
	segment, index int
	spot           spot
}

// resolve gives names to pending frames by the variables of another frame.
func (w *walker) resolve(up spot) {
	if up.proto == nil || len(w.pending) == 0 {
		return
	}
	const patience = 16
	var left []pendingName
	for _, n := range w.pending {
		if name := w.ownName(n.spot, up); name != "" {
			w.out.Segments[n.segment][n.index].Function = name
		} else if len(left) < patience {
			left = append(left, n)
		}
	}
	w.pending = left
}

// tailCalled names a function by the one that was called in its place, which
// must have ended by calling it: by its variables, or by its only tail call.
func (w *walker) tailCalled(c called, here spot, own func(w *walker, here, holder spot) string) called {
	const longest = 4
	for range longest {
		if !c.known || !c.value.isFunc() {
			return called{}
		}
		first := spot{fn: c.value.addr(), proto: w.vm.funcProto(w.r, c.value.addr()), pos: -1, slots: here.slots}
		if first.proto == nil {
			return called{}
		}
		if own != nil {
			if name := own(w, here, first); name != "" {
				return called{name: name, path: name}
			}
		}
		if first.pos = first.proto.onlyTailCall(); first.pos == 0 {
			return called{}
		}
		c = w.calledName(first)
		if c.name != "" && (!c.known || !c.value.isFunc() || c.value.addr() == here.fn) {
			return c
		}
	}
	return called{}
}

// refutes says that the named thing is known to be another function.
func (w *walker) refutes(c called, here spot) bool {
	return c.known && here.fn != 0 && c.value.isFunc() && !w.sameFunction(c.value, here)
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

// ownName looks for a variable of a frame that holds the function: an upvalue,
// as every recursive local function has of itself, or a local variable.
func (w *walker) ownName(here, holder spot) string {
	if holder.proto == nil {
		return ""
	}
	if holder.fn != 0 {
		for i, name := range holder.proto.upvalues {
			if v, ok := w.upvalue(holder, i); ok && name != "" && w.sameFunction(v, here) {
				return name
			}
		}
	}
	if holder.pos < 0 || holder.base == here.base {
		return ""
	}
	for i, variable := range holder.proto.visible(holder.pos) {
		if v, ok := holder.slots.get(holder.base + 8*uint64(i)); ok && w.sameFunction(v, here) {
			return variable.name
		}
	}
	return ""
}

// builtinName names a function that is not written in Lua by where the VM's
// modules hold it, else by how it was called.
func (w *walker) builtinName(here, up spot) string {
	if name := w.vm.names.lookup(w.vm, here.fn); name != "" {
		return name
	}
	c := w.calledName(up)
	if c.name != "" && (!c.known || !c.value.isFunc() || c.value.addr() == here.fn) {
		return c.path
	}
	if c = w.tailCalled(c, here, nil); c.name != "" {
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
