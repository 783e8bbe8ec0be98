package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

const (
	maxLocals = 200
	maxValues = 48 // of one frame
	maxText   = 64 // bytes of a string value
)

// visible names the local variables at an instruction, by register.
func (vm *VM) visible(r *reader, p *proto, pc int) []string {
	n := i32(p.raw, vm.sizeLocals)
	if n <= 0 || n > 1<<16 {
		return nil
	}
	b := r.block(u64(p.raw, vm.locals), 16*n)
	var names []string
	for ; len(b) >= 16 && i32(b, 8) <= pc && len(names) < maxLocals; b = b[16:] {
		if pc < i32(b, 12) {
			name, _, _ := r.text(u64(b, 0), maxName)
			names = append(names, name)
		}
	}
	return names
}

// variables reads the arguments and local variables of a call.
func (vm *VM) variables(r *reader, a activation) (args, locals []stack.Value) {
	names := vm.visible(r, a.proto, a.pc)
	if len(names) == 0 && i32(a.proto.raw, vm.sizeLocals) == 0 {
		for i := range min(a.proto.params, maxValues) { // stripped
			names = append(names, fmt.Sprintf("(slot %d)", i+1))
		}
	}
	for i, name := range names[:min(len(names), maxValues)] {
		b := r.block(a.base+16*uint64(i), 16)
		if b == nil {
			break
		}
		kind, text := vm.describe(r, b)
		v := stack.Value{Name: name, Type: kind, Text: text, Argument: i < a.proto.params}
		switch {
		case v.Argument:
			args = append(args, v)
		case !strings.HasPrefix(name, "("): // else a loop's own
			locals = append(locals, v)
		}
	}
	return args, locals
}

// describe tells the type and a short text of a value.
func (vm *VM) describe(r *reader, b []byte) (kind, text string) {
	word, tag := u64(b, 0), b[8]&^collectable
	if tag == vm.falseTag && (tag != vm.trueTag || word&0xffffffff == 0) {
		return "boolean", "false"
	}
	switch tag {
	case vm.trueTag:
		return "boolean", "true"
	case vm.integer:
		return "number", strconv.FormatInt(int64(word), 10)
	case vm.float:
		return "number", number(math.Float64frombits(word))
	case typeString, typeLongString:
		s, n, ok := r.text(word, maxText)
		if !ok {
			return "string", "(unreadable)"
		}
		text := strconv.Quote(s)
		if n > len(s) {
			text += "..."
		}
		return "string", text
	}
	names := [...]string{"nil", "boolean", "userdata", "number", "string", "table", "function", "userdata", "thread"}
	n := int(tag & 0xf)
	if n >= len(names) {
		return "internal", "(internal)"
	}
	if n == 0 {
		return "nil", "nil"
	}
	return names[n], fmt.Sprintf("%s(%#x)", names[n], word)
}

// number prints a float like Lua: 14 digits, and a fraction if it is whole.
func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'g', 14, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
