package unwind

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/stack"
)

// stepInto delivers a signal and stops at the first instruction of its handler.
func (x *target) stepInto(s unix.Signal) {
	x.t.Helper()
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(x.pid), 0, uintptr(s), 0, 0)
	if errno != 0 {
		x.t.Fatal(errno)
	}
	x.wait()
}

// frames unwinds, and wants the walk to reach the entry.
func (x *target) frames() (pcs []uint64, frames []Frame) {
	x.t.Helper()
	frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
	for _, f := range frames {
		pcs = append(pcs, f.PC)
	}
	if truncated != "" || !slices.Contains(x.names(frames), "main") {
		x.t.Fatalf("%v: %s", x.names(frames), truncated)
	}
	return pcs, frames
}

// TestSignalAtEveryInstruction interrupts a program after each instruction with
// a signal. Below the handler must lie what lay on the stack before, at the same
// addresses and by the same names, also where the first instruction of a
// function was to come: the one before it belongs to another function.
func TestSignalAtEveryInstruction(t *testing.T) {
	for _, v := range []struct {
		name, compiler string
		flags          []string
	}{
		{"glibc", "gcc", nil},
		{"glibc static", "gcc", []string{"-static"}},
		{"musl", "musl-gcc", []string{"-static"}}, // its trampoline has no rules
	} {
		t.Run(v.name, func(t *testing.T) {
			x := start(t, buildWith(t, v.compiler, append(v.flags, "-O2")...))
			x.reach("middle", "")
			for range 150 {
				x.step()
				was, before := x.frames()
				sp := x.registers().Value[stack.RSP]
				x.stepInto(unix.SIGUSR2)
				for step := 0; x.registers().Value[stack.RSP] != sp || x.registers().Value[stack.RIP] != was[0]; step++ {
					now, after := x.frames()
					names := x.names(after)
					below := slices.IndexFunc(after, func(f Frame) bool { return f.Signal }) + 1
					if step > 200 || below == 0 || !slices.Equal(now[below:], was) || !slices.Equal(names[below:], x.names(before)) ||
						below > 1 && !slices.Contains(names[:below], "tick") {
						t.Fatalf("step %d of the handler: %v at %#x, want %v at %#x below", step, names, now, x.names(before), was)
					}
					x.step()
				}
			}
		})
	}
}

// buildWith compiles testdata/target.c.
func buildWith(t testing.TB, compiler string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "target")
	args := append([]string{"-o", out, "testdata/target.c"}, flags...)
	if text, err := exec.Command(need(t, compiler), append(args, "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}
