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

	// The code that returns from a signal handler, and where above the stack
	// pointer the kernel put which register of what was interrupted.
	trampoline      []byte
	trampolineSteps []uint64 // bytes of it behind which the program counter may be
	saved           uint64
	savedRegs       []int
}

func bits(list ...int) uint64 {
	var set uint64
	for _, n := range list {
		set |= 1 << n
	}
	return set
}

func upTo(last int) (list []int) {
	for n := range last + 1 {
		list = append(list, n)
	}
	return list
}

var amd64 = arch{
	pc: stack.RIP, sp: stack.RSP, fp: stack.RBP, link: -1,
	kept: bits(stack.RBX, stack.RBP, stack.RSP, stack.R12, stack.R13, stack.R14, stack.R15,
		stack.RIP),
	addrMask: 1<<64 - 1,

	trampoline:      []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, // mov $15, %rax; syscall
	trampolineSteps: []uint64{0, 7, 9},
	saved:           40,
	savedRegs: []int{
		stack.R8, stack.R9, stack.R10, stack.R11, stack.R12, stack.R13, stack.R14, stack.R15, stack.RDI,
		stack.RSI, stack.RBP, stack.RBX, stack.RDX, stack.RAX, stack.RCX, stack.RSP, stack.RIP,
	},
}

// On arm64: 0..30 are x0..x30, 31 is sp, 32 stands for pc here.
var arm64 = arch{
	pc: 32, sp: 31, fp: 29, link: 30,
	kept:     bits(19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32),
	addrMask: 1<<48 - 1,

	trampoline:      []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, // mov x8, #139; svc #0
	trampolineSteps: []uint64{0, 4, 8},
	saved:           128 + 176 + 8, // siginfo, ucontext, fault address
	savedRegs:       upTo(32),
}

// archOf chooses by an image of the process; without any it is x86-64.
func archOf(m elf.Machine) *arch {
	if m == elf.EM_AARCH64 {
		return &arm64
	}
	return &amd64
}
