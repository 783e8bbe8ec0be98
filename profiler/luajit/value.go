package luajit

import (
	"fmt"
	"math"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

const (
	maxText  = 64  // bytes of a string value
	maxCount = 256 // entries of a part of a table that are counted one by one
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
		if name := vm.names.lookup(vm, fn); name != "" {
			return "function(" + name + ")"
		}
		return "function(builtin)"
	}
	if p := vm.funcProto(r, fn); p != nil {
		return fmt.Sprintf("function(%s:%d)", path.Base(p.file()), max(p.firstline, 0))
	}
	return "function"
}

// describeTable counts the entries of a table, of a large one not all.
func describeTable(r reader, addr uint64) string {
	t, ok := r.table(addr)
	if !ok {
		return "table"
	}
	count, more := arrayEntries(r, t), ""
	r.nodes(t, maxCount, func(_, _ tv) bool { count++; return true })
	if t.hmask >= maxCount {
		more = "+"
	}
	return fmt.Sprintf("table(%d%s)", count, more)
}

// arrayEntries counts the entries of the array part. Those of a large one are
// taken to be without holes, as Lua's length operator does.
func arrayEntries(r reader, t table) int {
	filled := func(i int) bool { return tv(r.u64(t.array+8*uint64(i))).tag() != tagNil }
	if t.asize > maxCount {
		return sort.Search(int(t.asize)-1, func(i int) bool { return !filled(i + 1) })
	}
	count := 0
	for b := r.bytes(t.array, 8*int(t.asize)); len(b) >= 8; b = b[8:] {
		if tv(le64(b)).tag() != tagNil {
			count++
		}
	}
	return count
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
