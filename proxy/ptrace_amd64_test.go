package proxy

import (
	"testing"

	"golang.org/x/sys/unix"
)

// pointerRegisters returns the stack pointer, then the other registers.
func pointerRegisters(t testing.TB, tid int) []uint64 {
	t.Helper()
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		t.Fatal(err)
	}
	return []uint64{r.Rsp, r.Rbx, r.Rbp, r.R12, r.R13, r.R14, r.R15, r.Rdi, r.Rsi, r.Rax, r.Rcx, r.Rdx, r.R8, r.R9, r.R10, r.R11}
}
