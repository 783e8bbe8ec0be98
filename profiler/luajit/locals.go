package luajit

import (
	"fmt"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

const (
	maxValues = 48  // of one frame
	allValues = 512 // of one walk
)

// variables lists the parameters and local variables of a Lua frame that are
// visible where it stands. What can't be known is left out.
func (w *walker) variables(s spot) []stack.Value {
	var args, locals []stack.Value
	if s.pos < 0 {
		return nil
	}
	vars := s.proto.visible(s.pos)
	if len(vars) == 0 && len(s.proto.vars) == 0 {
		vars = unnamed(s.proto.params)
	}
	for i, variable := range vars {
		if i >= maxValues || w.values >= allValues {
			break
		}
		if strings.HasPrefix(variable.name, "(for ") {
			continue
		}
		v, ok := w.slotValue(s, i, variable.name)
		w.values++
		switch {
		case !ok:
		case v.Argument:
			args = append(args, v)
		default:
			locals = append(locals, v)
		}
	}
	return append(args, locals...)
}

// slotValue reads a variable. Of one that only a floating-point register of a
// trace holds, it tells the last value that is known, and says so.
func (w *walker) slotValue(s spot, slot int, name string) (stack.Value, bool) {
	addr := s.base + 8*uint64(slot)
	v, ok := s.slots.get(addr)
	note := ""
	if !ok && s.trace {
		v, ok = s.slots.began(addr)
		note = " when the trace began"
	}
	if !ok {
		return stack.Value{}, false
	}
	value := w.vm.value(w.r, name, v, slot < s.proto.params)
	value.Text += note
	return value, true
}

// unnamed stands for the parameters of code without debug information.
func unnamed(n int) []variable {
	vars := make([]variable, n)
	for i := range vars {
		vars[i].name = fmt.Sprintf("(slot %d)", i+1)
	}
	return vars
}
