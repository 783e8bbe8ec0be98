package luajit

import "github.com/spinguard/spinguard/profiler/procmem"

// CodeKind says what machine code of a VM an address lies in.
type CodeKind uint8

// The kinds of code.
const (
	CodeNone        CodeKind = iota // not of this VM
	CodeInterpreter                 // the interpreter's assembler code and its helpers
	CodeTrace                       // a compiled trace
)

// Code says what code of the VM lies at an address, as mem has it or, if that is
// nil, the live process, and how large the native frame of that code is: the distance from the stack
// pointer inside of it to the one above the frame (the CFA). Helpers that the
// interpreter or a trace calls inside the same code, such as the modulo, push
// a return address without any unwind rule; there the size is 8 or more too
// small. Walk.CFA is exact.
func (vm *VM) Code(mem procmem.Memory, addr uint64) (CodeKind, int) {
	r := vm.live
	if mem != nil {
		r.mem = mem
	}
	if addr >= vm.lo && addr < vm.hi {
		return CodeInterpreter, int(vm.frameSize)
	}
	if t := vm.traceAt(r, addr); t != nil {
		return CodeTrace, int(vm.frameSize + vm.jitExtra + t.spadjust)
	}
	return CodeNone, 0
}
