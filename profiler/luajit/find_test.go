package luajit

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// TestTwoVMs finds both machines of one process, and only one is running.
func TestTwoVMs(t *testing.T) {
	libraries, _ := filepath.Glob("/usr/lib/*/libluajit-5.1.so.2")
	host := buildHost(t)
	if len(libraries) == 0 || host == "" {
		missing(t, "shared library of LuaJIT, or a C compiler")
	}
	gcd, _ := filepath.Abs("testdata/gcd.lua")
	idle, _ := filepath.Abs("testdata/idle.lua")
	p, _ := start(t, engine{"two", []string{host, libraries[0]}}, gcd, idle, "two")
	vms := findVMs(t, p)
	if len(vms) != 2 {
		t.Fatalf("%d VMs, want 2", len(vms))
	}
	pause(10)
	running, resting := 0, 0
	for _, vm := range vms {
		mem, regs := sample(t, vm, p)
		w, err := vm.Walk(mem, regs)
		switch {
		case errors.Is(err, ErrIdle):
			resting++
		case err == nil && w.Segments[0][0].Function == "gcd":
			running++
		default:
			t.Errorf("%v\n%s", err, text(w, regs))
		}
	}
	if running != 1 || resting != 1 {
		t.Errorf("%d running, %d resting", running, resting)
	}
}

func TestFindNone(t *testing.T) {
	p, err := procmem.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	maps, err := procmem.ReadMaps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if vms, err := Find(p, maps, nil); !errors.Is(err, ErrNone) {
		t.Errorf("%d VMs in a Go program, %v", len(vms), err)
	}
}

// TestGC32 refuses a build with 32-bit references by name. The memory holds a
// main thread and a global state as such a build lays them out.
func TestGC32(t *testing.T) {
	const at, size = 0x40001000, 0x3000
	data := make([]byte, size)
	le := binary.LittleEndian
	thread, global := uint32(at+0x10), uint32(at+0x10+0x40)
	data[0x10+5], data[0x10+6] = tagThread, ffC
	le.PutUint32(data[0x10+8:], global)
	le.PutUint32(data[0x10+0x40+0x60:], thread)
	maps := procmem.Maps{{Start: at, End: at + size, Read: true, Write: true}}
	_, err := Find(procmem.Window{Addr: at, Data: data}, maps, nil)
	var refused *UnsupportedError
	if !errors.As(err, &refused) || refused.What[:10] != "GC32 build" {
		t.Errorf("GC32 build: %v", err)
	}
}

// TestGC32Live refuses a real one, where SPINGUARD_LUAJIT_GC32 names it.
func TestGC32Live(t *testing.T) {
	command := os.Getenv("SPINGUARD_LUAJIT_GC32")
	if command == "" {
		t.Skip("SPINGUARD_LUAJIT_GC32 names no luajit")
	}
	gcd, _ := filepath.Abs("testdata/gcd.lua")
	p, _ := start(t, engine{"gc32", []string{command}}, gcd, "off")
	maps, err := procmem.ReadMaps(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	vms, err := Find(p, maps, nil)
	var refused *UnsupportedError
	if !errors.As(err, &refused) || refused.What[:10] != "GC32 build" {
		t.Errorf("%d VMs, %v", len(vms), err)
	}
}
