package unwind

import (
	"debug/elf"

	"github.com/spinguard/spinguard/profiler/stack"
)

// arch is what differs between architectures. Registers are numbered as DWARF
// does; the program counter has a number of its own on arm64.
type arch struct {
	pc, sp, fp int
	link       int    // register that holds the return address in a leaf; -1: it is on the stack
	kept       uint64 // registers that a call leaves unchanged
	addrMask   uint64 // bits of a code address: the others may hold a signature
}

func bits(list ...int) uint64 {
	var set uint64
	for _, n := range list {
		set |= 1 << n
	}
	return set
}

var amd64 = arch{
	pc: stack.RIP, sp: stack.RSP, fp: stack.RBP, link: -1,
	kept: bits(stack.RBX, stack.RBP, stack.RSP, stack.R12, stack.R13, stack.R14, stack.R15,
		stack.RIP),
	addrMask: 1<<64 - 1,
}

// On arm64: 0..30 are x0..x30, 31 is sp, 32 stands for pc here.
var arm64 = arch{
	pc: 32, sp: 31, fp: 29, link: 30,
	kept:     bits(19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32),
	addrMask: 1<<48 - 1,
}

// archOf chooses by an image of the process; without any it is x86-64.
func archOf(m elf.Machine) *arch {
	if m == elf.EM_AARCH64 {
		return &arm64
	}
	return &amd64
}
