package luajit

import (
	"fmt"

	"github.com/spinguard/spinguard/profiler/procmem"
	"golang.org/x/arch/x86/x86asm"
)

// Images resolves exported symbols of the images mapped into the process.
type Images interface {
	// Symbol returns the address in the process of a symbol of the image that
	// the mapping belongs to.
	Symbol(m procmem.Mapping, name string) (addr, size uint64, ok bool)
}

// checkAccessors holds the layout against the exported functions that read
// the same fields, and takes from them what the interpreter does not use.
func checkAccessors(l *layout, r reader, maps procmem.Maps, images Images) error {
	m, ok := maps.Find(l.lo)
	if !ok || images == nil {
		return nil
	}
	fields := func(name string) []int64 {
		addr, size, ok := images.Symbol(m, name)
		if !ok {
			return nil
		}
		return fieldsOf(r.bytes(addr, int(min(max(size, 16), 64))))
	}
	if got := fields("lua_gettop"); len(got) == 2 && (got[0] != l.top || got[1] != l.base) {
		return unsupported(fmt.Sprintf("thread: lua_gettop reads %#x and %#x, the interpreter %#x and %#x",
			got[0], got[1], l.top, l.base))
	}
	if got := fields("lua_getexdata"); len(got) == 1 {
		l.exdata = got[0]
	}
	return nil
}

// fieldsOf lists the offsets from the first argument that a small function
// reads, in order.
func fieldsOf(code []byte) []int64 {
	var fields []int64
	follow(code, func(i x86asm.Inst) bool {
		for _, a := range i.Args {
			if m, ok := a.(x86asm.Mem); ok && m.Base == x86asm.RDI {
				fields = append(fields, m.Disp)
			}
		}
		return i.Op != x86asm.RET && i.Op != x86asm.JMP && i.Op != x86asm.CALL
	})
	return fields
}
