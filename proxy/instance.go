package proxy

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// instance is what every watched process has.
type instance struct {
	pid     int
	start   uint64
	parent  int
	exe     *exe
	bias    uint64
	path    string
	deleted bool
	mem     *procmem.Process
}

func openInstance(pid int, e *exe) (instance, error) {
	mem, err := procmem.Open(pid)
	if err != nil {
		return instance{}, err
	}
	in := instance{pid: pid, start: mem.StartTime, exe: e, mem: mem}
	if in.bias, err = loadBias(pid, e); err == nil {
		err = in.readParent()
	}
	if err != nil {
		_ = mem.Close()
		return instance{}, err
	}
	in.path, in.deleted = exePath(pid)
	return in, nil
}

func (in *instance) close() { _ = in.mem.Close() }

// addr is where a symbol lies in the process.
func (in *instance) addr(name string) (uint64, bool) {
	s, ok := in.exe.symbols[name]
	return s.value + in.bias, ok
}

func (in *instance) uint32(name string) uint32 {
	addr, ok := in.addr(name)
	if !ok {
		return 0
	}
	v, err := procmem.Uint32(in.mem, addr)
	if err != nil {
		return 0
	}
	return v
}

// readParent reads the parent's pid; it changes once the parent ends.
func (in *instance) readParent() error {
	stat, err := os.ReadFile(procPath(in.pid, "stat"))
	if err != nil {
		return procmem.ErrGone
	}
	fields := procmem.AfterComm(stat)
	if len(fields) < 20 {
		return fmt.Errorf("status of pid %d: %d fields after the name, want 20", in.pid, len(fields))
	}
	in.parent, err = strconv.Atoi(string(fields[1]))
	return err
}

func exePath(pid int) (path string, deleted bool) {
	path, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return "", false
	}
	return strings.CutSuffix(path, " (deleted)")
}

// cmdline returns the arguments of a process, at most 64 KiB of them.
func cmdline(pid int) []string {
	f, err := os.Open(procPath(pid, "cmdline"))
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	n, _ := f.Read(buf)
	text := bytes.TrimRight(buf[:n], "\x00")
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\x00")
}
