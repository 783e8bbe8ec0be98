package profiler

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// asleep reads the stack pointer and the program counter of a thread that
// sleeps in a system call, as soon as it does.
func asleep(t *testing.T, pid int) (sp, pc uint64) {
	t.Helper()
	for range 300 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(text))
		if len(f) == 9 && f[0] != "232" && f[0] != "281" { // not in epoll
			if _, err := fmt.Sscanf(f[7]+" "+f[8], "0x%x 0x%x", &sp, &pc); err != nil {
				t.Fatal(err)
			}
			return sp, pc
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the worker does not sleep")
	return 0, 0
}

func TestBlocked(t *testing.T) {
	for _, c := range []struct{ name, lua, builtin string }{
		{"os.execute", `os.execute("sleep 20")`, "os.execute"},
		{"ffi usleep", `local ffi = require "ffi"; ffi.cdef "int usleep(unsigned);"; ffi.C.usleep(20000000)`, "usleep"},
		{"read of a pipe", `io.popen("sleep 20"):read("*a")`, "read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNginx(t, 1, "", luaCases, "location /go { content_by_lua_block { "+c.lua+" } }")
			n.Trigger(t, "/go")
			p := openProcess(t, n.Workers[0])
			sp, pc := asleep(t, n.Workers[0])
			t.Cleanup(func() {
				for _, pid := range children(n.Workers[0]) {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			r := p.Blocked(sp, pc)
			t.Log(r.State, lines(r.Stack))
			text := lines(r.Stack)
			if r.Stack.Truncated != "" || !strings.Contains(text, c.builtin) || !strings.Contains(text, "content_by_lua(") ||
				!strings.HasSuffix(text, "_start") {
				t.Errorf("stack of a blocked worker: %s (%s)", text, r.Stack.Truncated)
			}
			if r.Lower() == 0 || r.Lower() != p.Blocked(sp, pc).Lower() {
				t.Errorf("fingerprints %x and %x of one handler", r.Lower(), p.Blocked(sp, pc).Lower())
			}
			if r.Request == 0 || r.Thread == 0 {
				t.Errorf("request %#x, thread %#x", r.Request, r.Thread)
			}
		})
	}
}

func TestOpenOfNoProcess(t *testing.T) {
	if _, err := Open(1<<22+1, symbol.NewCache(4)); !errors.Is(err, procmem.ErrGone) {
		t.Errorf("error %v, want ErrGone", err)
	}
}

func TestSampleWithoutWindows(t *testing.T) {
	p, err := Open(os.Getpid(), symbol.NewCache(4))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if r := p.Understand(bpf.Sample{}); r.Stack.Truncated == "" || r.Lower() != 0 {
		t.Errorf("%+v", r)
	}
	// Registers and windows that mean nothing must not do harm either.
	junk := bpf.Sample{Full: true, Stack: bpf.Window{Addr: 1<<64 - 16, Data: make([]byte, 64)}}
	for i := range junk.Registers {
		junk.Registers[i] = 1<<64 - 8
	}
	if r := p.Understand(junk); r.Stack.Truncated == "" {
		t.Errorf("%+v", r)
	}
	if end := p.StackEnd(1); end != 0 {
		t.Errorf("stack end %#x of nothing", end)
	}
}

// Mappings are read again when an address misses, but not for ever.
func TestMappingsAreReadAgainSeldom(t *testing.T) {
	now := time.Unix(1000, 0)
	m, err := openModules(os.Getpid(), symbol.NewCache(4), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(code) })
	reads := func() (n int) {
		for range 1000 {
			before := m.read
			m.refresh()
			if m.read != before {
				n++
			}
		}
		return n
	}
	if n := reads(); n != mapsBurst {
		t.Errorf("read %d times at first, want %d", n, mapsBurst)
	}
	now = now.Add(3 * mapsEvery)
	if n := reads(); n != 3 {
		t.Errorf("read %d times in three seconds", n)
	}
	now = now.Add(time.Hour)
	if n := reads(); n != mapsBurst {
		t.Errorf("read %d times after an hour, want %d", n, mapsBurst)
	}
}

// Workers share the addresses of their master, and nothing else.
func TestWorkersAreKeptApart(t *testing.T) {
	n := startNginx(t, 2, "", luaCases+`init_worker_by_lua_block {
		local own = loadstring("local x = 0; return function() while true do x = x + 1 end end", "=worker" .. ngx.worker.id())()
		spin = function() own() end }`, "location /go { content_by_lua_block { spin() } }")
	cache := symbol.NewCache(64)
	s := openSampler(t)
	byPID := map[int]*Process{}
	for _, pid := range n.Workers {
		p, err := Open(pid, cache)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Close() }()
		byPID[pid] = p
		watch(t, s, p)
	}
	for range 8 { // each worker takes one and is gone
		n.Trigger(t, "/go")
	}
	chunks := map[int]map[string]int{}
	take(t, s, 400, aMinute, func(x bpf.Sample) {
		r := byPID[x.PID].Understand(x)
		for _, f := range r.Stack.Frames {
			if (f.Kind == stack.Lua || f.Kind == stack.Trace) && strings.HasPrefix(f.File, "worker") {
				if chunks[x.PID] == nil {
					chunks[x.PID] = map[string]int{}
				}
				chunks[x.PID][f.File]++
			}
		}
	})
	if len(chunks) != 2 || len(chunks[n.Workers[0]]) != 1 || len(chunks[n.Workers[1]]) != 1 {
		t.Errorf("chunks by worker: %v", chunks)
	}
	for file := range chunks[n.Workers[0]] {
		if chunks[n.Workers[1]][file] > 0 {
			t.Errorf("%s runs in both workers", file)
		}
	}
}
