package luajit

import (
	"encoding/binary"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

const (
	maxText  = 64   // bytes of a string value
	maxCount = 4096 // entries of a table that are counted, per part
)

// value turns a tagged value into what a stack shows of it.
func (vm *VM) value(r reader, name string, v tv, argument bool) stack.Value {
	kind, text := vm.describe(r, v)
	out := stack.Value{Name: name, Type: kind, Text: text, Argument: argument}
	if kind == "table" {
		out.Addr = v.addr()
	}
	return out
}

// describe turns a tagged value into its type and a short printable text.
func (vm *VM) describe(r reader, v tv) (kind, text string) {
	switch v.tag() {
	case tagNil:
		return "nil", "nil"
	case tagFalse:
		return "boolean", "false"
	case tagTrue:
		return "boolean", "true"
	case tagLightud, tagUdata:
		return "userdata", fmt.Sprintf("userdata(%#x)", v.addr())
	case tagStr:
		s, n, ok := r.str(v.addr(), maxText)
		if !ok {
			return "string", "(unreadable)"
		}
		text := strconv.Quote(s)
		if n > len(s) {
			text += "..."
		}
		return "string", text
	case tagThread:
		return "thread", fmt.Sprintf("thread(%#x)", v.addr())
	case tagFunc:
		return "function", vm.describeFunc(r, v.addr())
	case tagCdata:
		return "cdata", fmt.Sprintf("cdata(%#x)", v.addr())
	case tagTab:
		return "table", describeTable(r, v.addr())
	case tagInt:
		return "number", strconv.Itoa(int(int32(v)))
	case tagUpval, tagProto, tagTrace:
		return "internal", "(internal)"
	}
	return "number", number(math.Float64frombits(uint64(v)))
}

// number prints a double like Lua: integers without a fraction, 14 digits.
func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0 && math.Signbit(f):
		return "-0"
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 14, 64)
}

func (vm *VM) describeFunc(r reader, fn uint64) string {
	if !r.is(fn, tagFunc) {
		return "function"
	}
	if r.u8(fn+funcFFID) != ffLua {
		if name := vm.names.lookup(vm, r, fn); name != "" {
			return "function(" + name + ")"
		}
		return "function(builtin)"
	}
	if p := vm.funcProto(r, fn); p != nil {
		return fmt.Sprintf("function(%s:%d)", path.Base(p.file()), max(p.firstline, 0))
	}
	return "function"
}

func describeTable(r reader, addr uint64) string {
	t, ok := r.table(addr)
	if !ok {
		return "table"
	}
	count, more := 0, ""
	if t.asize > 0 {
		n := min(int(t.asize), maxCount)
		b := r.bytes(t.array, n*8)
		for ; len(b) >= 8; b = b[8:] {
			if tv(binary.LittleEndian.Uint64(b)).tag() != tagNil {
				count++
			}
		}
		if n < int(t.asize) {
			more = "+"
		}
	}
	r.nodes(t, maxCount, func(_, _ tv) bool { count++; return true })
	if t.hmask >= maxCount {
		more = "+"
	}
	return fmt.Sprintf("table(%d%s)", count, more)
}

// printable replaces what could harm a terminal or a file, and cuts.
func printable(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// funcProto returns the prototype of a Lua function, nil if it has none.
func (vm *VM) funcProto(r reader, fn uint64) *proto {
	if !r.is(fn, tagFunc) || r.u8(fn+funcFFID) != ffLua {
		return nil
	}
	return vm.loadProto(r, r.u64(fn+uint64(vm.funcPC))-uint64(vm.protoSize))
}
