package lua

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

// start runs a script until it says that it is ready, and returns what it said
// before.
func start(t *testing.T, engine, script string) (p *procmem.Process, said string) {
	t.Helper()
	exe, err := exec.LookPath(engine)
	if err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	cmd := exec.Command(exe, script)
	cmd.Dir, cmd.Stderr = "testdata", os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		said += lines.Text() + "\n"
	}
	if p, err = procmem.Open(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, said
}

// words stops our own child for an instant and returns its registers and its
// stack. The product never stops anything.
func words(t *testing.T, p *procmem.Process) []uint64 {
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
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(p.PID, &regs); err != nil {
		t.Fatal(err)
	}
	list := []uint64{regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx, regs.Rsi, regs.Rdi, regs.Rbp, regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15}
	var b [8]byte
	for at := regs.Rsp; at < regs.Rsp+16<<10 && p.ReadMemory(at, b[:]) == nil; at += 8 {
		list = append(list, binary.LittleEndian.Uint64(b[:]))
	}
	return list
}

// settled walks until the script is where it stays: it says so shortly before.
func settled(t *testing.T, vm *VM, p *procmem.Process) Walk {
	t.Helper()
	var w Walk
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if w = vm.Walk(p, words(t, p)); len(w.Runs) > 0 && w.Runs[0].Frames[0].Kind == stack.Lua {
			break
		}
	}
	return w
}

func newVM(t *testing.T, version string) *VM {
	t.Helper()
	vm := New("$LuaVersion: Lua " + version + ".6  Copyright (C) 1994-2020 Lua.org, PUC-Rio $")
	if vm == nil || vm.Version() != version {
		t.Fatalf("%+v", vm)
	}
	return vm
}

// eachVersion runs a test with the interpreters of Debian.
func eachVersion(t *testing.T, do func(t *testing.T, version string)) {
	for _, version := range []string{"5.3", "5.4"} {
		t.Run(version, func(t *testing.T) { do(t, version) })
	}
}

var tracebackLine = regexp.MustCompile(`^\t(?:.*/)?([^/:]+:\d+): in (?:upvalue|local|method|field|metamethod|function) (.*)$`)

// TestTraceback compares the walk with what Lua itself says of the same place.
func TestTraceback(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		p, said := start(t, "lua"+version, "traceback.lua")
		var want []string
		for line := range strings.Lines(said) {
			if m := tracebackLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
				want = append(want, m[1]+" "+name(m[2]))
			}
		}
		// Lua does not tell who resumed the coroutine.
		want = append(want, "traceback.lua:51 main chunk")
		if len(want) != 12 {
			t.Fatalf("traceback of the script:\n%s", said)
		}
		vm := newVM(t, version)
		for n := range 10 {
			time.Sleep(time.Duration(1+n*7%11) * time.Millisecond)
			w := settled(t, vm, p)
			got, inC := walkLines(w)
			if strings.Join(got, "\n") != strings.Join(want, "\n") || w.Truncated != "" {
				t.Fatalf("walk says (%s)\n%s\nLua says\n%s", w.Truncated, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if text := strings.Join(inC, " "); text != "sort pcall co" {
				t.Fatalf("in C: %s", text)
			}
		}
	})
}

// name drops quotes; metamethods are named by their tables, not by calls.
func name(said string) string {
	if strings.Contains(said, "index'") {
		return "function <traceback.lua:33>"
	}
	if strings.HasPrefix(said, "<") {
		return "function " + said
	}
	return strings.Trim(said, "'")
}

func walkLines(w Walk) (lines, builtins []string) {
	for _, run := range w.Runs {
		for _, f := range run.Frames {
			if f.Kind == stack.Builtin {
				builtins = append(builtins, f.Function)
				continue
			}
			lines = append(lines, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function))
		}
	}
	return lines, builtins
}

func TestValues(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		p, _ := start(t, "lua"+version, "traceback.lua")
		w := settled(t, newVM(t, version), p)
		if len(w.Runs) == 0 {
			t.Fatalf("%+v", w)
		}
		var got []string
		for _, v := range w.Runs[0].Frames[0].Values {
			got = append(got, fmt.Sprintf("%s=%s:%s/%v", v.Name, v.Text, v.Type, v.Argument))
		}
		const want = `a=3:number/true b=nan:number/true text="first\x00":string/true flag=true:boolean/true half=1.5:number/false none=nil:nil/false`
		if text := strings.Join(got, " "); strings.Replace(text, "-nan", "nan", 1) != want && !strings.HasPrefix(text, want+" ") {
			t.Errorf("%s\nwant\n%s", text, want)
		}
	})
}

// Runs are what one call of luaV_execute runs.
func TestRunsOfOneMachineFrame(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		p, _ := start(t, "lua"+version, "traceback.lua")
		w := settled(t, newVM(t, version), p)
		var got []string
		for _, run := range w.Runs {
			got = append(got, fmt.Sprint(len(run.Frames), run.Apart))
		}
		// stay and the comparison; from sort to __index; what pcall called;
		// pcall up to the handler, which was resumed; what called that before
		// it yielded; what called the coroutine, and main.
		want := map[string]string{"5.3": "2 false, 6 false, 1 true, 3 false, 1 true, 2 false", "5.4": "2 false, 6 false, 1 true, 4 false, 2 false"}[version]
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	})
}
