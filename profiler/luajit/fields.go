package luajit

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

// Table reads the entries of the table at the address, at most limit: those of
// the array part by index, then the others sorted by name. Keys that are
// neither strings nor numbers are left out. What is no table gives nothing.
func (vm *VM) Table(mem procmem.Memory, addr uint64, limit int) []stack.Value {
	r := reader{mem: mem, strLen: uint64(vm.strLen)}
	t, ok := r.table(addr)
	if !ok {
		return nil
	}
	var out []stack.Value
	if n := min(int(t.asize), limit); n > 0 {
		for i, b := 0, r.bytes(t.array, n*8); len(b) >= 8; i, b = i+1, b[8:] {
			if v := tv(binary.LittleEndian.Uint64(b)); v.tag() != tagNil {
				out = append(out, vm.value(r, strconv.Itoa(i), v, false))
			}
		}
	}
	named := len(out)
	r.nodes(t, limit, func(key, v tv) bool {
		if kind, text := vm.describe(r, key); kind == "string" || kind == "number" {
			if name, err := strconv.Unquote(text); err == nil {
				text = name
			}
			out = append(out, vm.value(r, text, v, false))
		}
		return len(out) < limit
	})
	slices.SortFunc(out[named:], func(a, b stack.Value) int { return strings.Compare(a.Name, b.Name) })
	return out
}
