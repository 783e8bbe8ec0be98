package luajit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"golang.org/x/sys/unix"
)

// engine is one way to run Lua scripts on a LuaJIT.
type engine struct {
	name string
	argv []string // before the script
}

// engines lists the LuaJITs of this host: the shared library of the nginx
// module, a luajit command, and what SPINGUARD_LUAJIT lists: commands and
// shared libraries, separated by colons.
func engines(t testing.TB) []engine {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/libluajit-5.1.so.2")
	var found []engine
	if path, err := exec.LookPath("luajit"); err == nil {
		found = append(found, engine{"luajit", []string{path}})
	}
	for _, path := range strings.Split(os.Getenv("SPINGUARD_LUAJIT"), ":") {
		switch {
		case strings.Contains(path, ".so"):
			libraries = append(libraries, path)
		case path != "":
			found = append(found, engine{strings.ReplaceAll(path, "/", "_"), []string{path}})
		}
	}
	if len(libraries) > 0 {
		if host := buildHost(t); host != "" {
			for _, l := range libraries {
				found = append(found, engine{"host" + strings.ReplaceAll(l, "/", "_"), []string{host, l}})
			}
		}
	}
	if len(found) == 0 {
		missing(t, "no LuaJIT on this host (library with a C compiler, or command)")
	}
	return found
}

var hostBinary string

// buildHost compiles the program that runs scripts in a shared library.
func buildHost(t testing.TB) string {
	t.Helper()
	if hostBinary != "" {
		return hostBinary
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		return ""
	}
	dir, err := os.MkdirTemp("", "luajit-host")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "host")
	if text, err := exec.Command(cc, "-O1", "-o", out, "testdata/host.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("host: %v\n%s", err, text)
	}
	hostBinary = out
	return out
}

func TestMain(m *testing.M) {
	code := m.Run()
	if hostBinary != "" {
		_ = os.RemoveAll(filepath.Dir(hostBinary))
	}
	os.Exit(code)
}

// missing skips, or fails where everything must be there.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// start runs a script and waits until it says that it is ready. It returns
// what the script printed before.
func start(t testing.TB, e engine, script string, args ...string) (*procmem.Process, string) {
	t.Helper()
	argv := append(append([]string{}, e.argv...), script) // then its arguments
	cmd := exec.Command(argv[0], append(argv[1:], args...)...)
	cmd.Stderr = os.Stderr
	cmd.Dir = "testdata"
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // images show the environment
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		said.WriteString(lines.Text() + "\n")
	}
	p, err := procmem.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	goOn(t, p.PID)
	return p, said.String()
}

// goOn waits until a process has used a little more CPU time: one that has just
// said that it is ready is still in that call.
func goOn(t testing.TB, pid int) {
	t.Helper()
	used := func() (ns int64) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if _, e := fmt.Sscan(string(text), &ns); err != nil || e != nil {
			t.Fatal(err, e)
		}
		return ns
	}
	const enough = int64(2 * time.Millisecond)
	for from := used(); used() < from+enough; {
		time.Sleep(time.Millisecond)
	}
}

// find returns the VMs of a process.
func findVMs(t testing.TB, p *procmem.Process) []*VM {
	t.Helper()
	maps, err := procmem.ReadMaps(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	vms, err := Find(p, maps, nil)
	if err != nil {
		t.Fatal(err)
	}
	return vms
}

// sample stops our own child for an instant and copies what the sampler
// copies. The product never stops anything.
func sample(t testing.TB, vm *VM, p *procmem.Process) (procmem.Overlay, *stack.Registers) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(p.PID); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PtraceDetach(p.PID) }()
	if err := unix.PtraceInterrupt(p.PID); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.PID, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		t.Fatalf("child did not stop: %v, status %#x", err, status)
	}
	var pr unix.PtraceRegs
	if err := unix.PtraceGetRegs(p.PID, &pr); err != nil {
		t.Fatal(err)
	}
	regs := &stack.Registers{}
	for i, v := range []uint64{
		pr.Rax, pr.Rdx, pr.Rcx, pr.Rbx, pr.Rsi, pr.Rdi, pr.Rbp, pr.Rsp,
		pr.R8, pr.R9, pr.R10, pr.R11, pr.R12, pr.R13, pr.R14, pr.R15, pr.Rip,
	} {
		regs.Set(i, v)
	}
	return copyWindows(vm, p, regs), regs
}

func copyWindows(vm *VM, p *procmem.Process, regs *stack.Registers) procmem.Overlay {
	r, l := reader{mem: p}, vm.Watch()
	over := procmem.Overlay{Under: p}
	window := func(addr uint64, n int) {
		if b := r.partial(addr, n); len(b) > 0 {
			over.Windows = append(over.Windows, procmem.Window{Addr: addr, Data: b})
		}
	}
	window(l.Global+uint64(l.GlobalOffset), l.GlobalSize)
	thread := r.u64(l.Global + uint64(l.CurL))
	window(thread, 128)
	from := r.u64(thread + uint64(l.Stack))
	to := r.u64(thread + uint64(l.MaxStack))
	if to > from && to-from < 1<<20 {
		window(from, int(min(to-from, 32<<10)))
	}
	window(regs.SP(), 16<<10)
	return over
}

// pause lets the child run on, each time for another while.
func pause(n int) { time.Sleep(time.Duration(1+n*7%11) * time.Millisecond) }
