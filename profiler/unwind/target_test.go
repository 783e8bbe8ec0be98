package unwind

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// need skips the test if a program is missing, or fails it where everything
// must be there.
func need(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatalf("%s: not installed", program)
		}
		t.Skipf("%s: not installed", program)
	}
	return path
}

// build compiles testdata/target.c.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	return buildWith(t, "gcc", flags...)
}

// target is a traced child. Its thread must stay on one OS thread of ours:
// ptrace is bound to it.
type target struct {
	t       testing.TB
	pid     int
	process *procmem.Process
	unwind  *Unwinder
}

// start runs a program under ptrace until it writes "ready".
func start(t testing.TB, path string, args ...string) *target {
	t.Helper()
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%s: wrote %q, want ready: %v", path, line, err)
	}
	return attach(t, cmd.Process.Pid)
}

// attach stops a child of ours with ptrace.
func attach(t testing.TB, pid int) *target {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	if err := unix.PtraceSeize(pid); err != nil {
		t.Fatalf("ptrace: %v", err)
	}
	// A tracee that died is not gone, for its parent either, until its tracer
	// has waited for it.
	t.Cleanup(func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		var status syscall.WaitStatus
		for !status.Exited() && !status.Signaled() {
			if _, err := syscall.Wait4(pid, &status, syscall.WALL, nil); err != nil {
				return
			}
		}
	})
	x := observe(t, pid)
	x.stop()
	return x
}

// observe opens a process without stopping it.
func observe(t testing.TB, pid int) *target {
	t.Helper()
	p, err := procmem.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	maps, err := procmem.ReadMaps(pid)
	if err != nil {
		t.Fatal(err)
	}
	return &target{t: t, pid: pid, process: p, unwind: New(symbol.NewCache(64), pid, maps)}
}

func (x *target) stop() {
	x.t.Helper()
	if err := unix.PtraceInterrupt(x.pid); err != nil {
		x.t.Fatal(err)
	}
	x.wait()
}

func (x *target) wait() {
	x.t.Helper()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(x.pid, &status, syscall.WALL, nil); err != nil || !status.Stopped() {
		x.t.Fatalf("pid %d did not stop: %v %v", x.pid, status, err)
	}
}

func (x *target) step() {
	x.t.Helper()
	if err := unix.PtraceSingleStep(x.pid); err != nil {
		x.t.Fatal(err)
	}
	x.wait()
}

// reach steps until a function is on the stack, and another one is the leaf.
func (x *target) reach(function, leaf string) {
	x.t.Helper()
	var names []string
	var truncated string
	for range 30000 {
		x.step()
		var frames []Frame
		frames, truncated = x.unwind.Unwind(x.registers(), x.process, nil)
		names = x.names(frames)
		if slices.Contains(names, function) && (leaf == "" || names[0] == leaf) {
			return
		}
	}
	x.t.Fatalf("%s is never on the stack: %v %s", function, names, truncated)
}

// sleeping waits until the process is in a system call and returns asleep.
func (x *target) sleeping() stack.Registers {
	x.t.Helper()
	for range 1000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.pid))
		if err != nil {
			x.t.Fatal(err)
		}
		if string(procmem.AfterComm(text)[0]) == "S" {
			return x.asleep()
		}
		time.Sleep(time.Millisecond)
	}
	x.t.Fatal("the process does not sleep")
	return stack.Registers{}
}

// running waits until the process has used 200 ms of CPU time.
func (x *target) running() {
	x.t.Helper()
	for range 2000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.pid))
		if err != nil {
			x.t.Fatal(err)
		}
		if ticks, err := strconv.Atoi(string(procmem.AfterComm(text)[11])); err == nil && ticks >= 20 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	x.t.Fatal("the process does not run")
}

func (x *target) cont() {
	x.t.Helper()
	if err := unix.PtraceCont(x.pid, 0); err != nil {
		x.t.Fatal(err)
	}
}

func (x *target) registers() stack.Registers {
	x.t.Helper()
	var raw unix.PtraceRegs
	if err := unix.PtraceGetRegs(x.pid, &raw); err != nil {
		x.t.Fatal(err)
	}
	var regs stack.Registers
	for i, v := range []uint64{
		raw.Rax, raw.Rdx, raw.Rcx, raw.Rbx, raw.Rsi, raw.Rdi, raw.Rbp, raw.Rsp,
		raw.R8, raw.R9, raw.R10, raw.R11, raw.R12, raw.R13, raw.R14, raw.R15, raw.Rip,
	} {
		regs.Set(i, v)
	}
	return regs
}

// asleep returns what /proc tells of a thread in a system call: stack pointer
// and program counter.
func (x *target) asleep() stack.Registers {
	x.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", x.pid))
	if err != nil {
		x.t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 9 {
		x.t.Fatalf("/proc/%d/syscall: %q", x.pid, text)
	}
	var sp, pc uint64
	if _, err := fmt.Sscanf(fields[7]+" "+fields[8], "0x%x 0x%x", &sp, &pc); err != nil {
		x.t.Fatal(err)
	}
	var regs stack.Registers
	regs.Set(stack.RSP, sp)
	regs.Set(stack.RIP, pc)
	return regs
}

func (x *target) names(frames []Frame) []string {
	names := make([]string, len(frames))
	for i := range frames {
		names[i] = x.unwind.Name(frames[i].Lookup())
	}
	return names
}

func (x *target) maps() (procmem.Maps, error) { return procmem.ReadMaps(x.pid) }
