package luajit

import (
	"fmt"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

const maxValues = 48

// values lists the parameters and local variables of a Lua frame that are
// visible where it stands. What can't be known, such as a value that lives in
// a floating-point register of a trace, is left out.
func (w *walker) values(s spot) []stack.Value {
	var args, locals []stack.Value
	if s.pos < 0 {
		return nil
	}
	vars := s.proto.visible(s.pos)
	if len(vars) == 0 && len(s.proto.vars) == 0 {
		vars = unnamed(s.proto.params)
	}
	for i, variable := range vars {
		if i >= maxValues {
			break
		}
		if strings.HasPrefix(variable.name, "(for ") {
			continue
		}
		v, ok := s.slots.get(s.base + 8*uint64(i))
		if !ok {
			continue
		}
		if i < s.proto.params {
			args = append(args, w.vm.value(w.r, variable.name, v, true))
		} else {
			locals = append(locals, w.vm.value(w.r, variable.name, v, false))
		}
	}
	return append(args, locals...)
}

// unnamed stands for the parameters of code without debug information.
func unnamed(n int) []variable {
	vars := make([]variable, n)
	for i := range vars {
		vars[i].name = fmt.Sprintf("(slot %d)", i+1)
	}
	return vars
}
