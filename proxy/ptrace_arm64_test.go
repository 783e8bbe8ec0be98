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
	return append([]uint64{r.Sp}, r.Regs[:]...)
}
