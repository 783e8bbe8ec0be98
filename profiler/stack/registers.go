package stack

// Registers are the integer registers of a thread in DWARF numbering for its
// architecture. On x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp,
// 7 rsp, 8..15 r8..r15, 16 the program counter.
type Registers struct {
	Value [33]uint64
	Known uint64 // bit n set: Value[n] is known
}

// DWARF register numbers of x86-64.
const (
	RAX = iota
	RDX
	RCX
	RBX
	RSI
	RDI
	RBP
	RSP
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	RIP
)

// Set stores a value and marks the register as known.
func (r *Registers) Set(n int, v uint64) {
	r.Value[n] = v
	r.Known |= 1 << n
}

// Get returns the value of register n and whether it is known.
func (r *Registers) Get(n int) (uint64, bool) {
	if n < 0 || n >= len(r.Value) {
		return 0, false
	}
	return r.Value[n], r.Known&(1<<n) != 0
}

// PC returns the program counter of an x86-64 thread.
func (r *Registers) PC() uint64 { return r.Value[RIP] }

// SP returns the stack pointer of an x86-64 thread.
func (r *Registers) SP() uint64 { return r.Value[RSP] }
