package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Values of ngx_process.
const (
	roleSingle    = 0 // master_process off, or not yet known: reading the configuration
	roleMaster    = 1
	roleSignaller = 2 // nginx -s
	roleWorker    = 3
	roleHelper    = 4 // cache manager and loader, privileged agent
)

// nginxProcess is one process that runs an nginx executable.
type nginxProcess struct {
	instance
	low  uint64 // the role variables lie in [low, low+len(buf))
	buf  []byte
	vars nginxVars

	started   bool
	cycleInfo nginxCycle
	cycle     uint64 // the ngx_cycle that cycleInfo was read from
}

// nginxVars are the variables that say what a process is at the moment.
type nginxVars struct {
	role, worker uint64
	exiting      bool
	helper       bool // privileged agent
	parent       int  // ngx_parent: the master, as the process itself knows it
}

var roleNames = []string{
	"ngx_process", "ngx_worker", "ngx_exiting", "ngx_quit", "ngx_terminate", "ngx_parent", "ngx_is_privileged_agent",
}

func watchNginx(pid int, e *exe) (watched, error) {
	in, err := openInstance(pid, e)
	if err != nil {
		return nil, err
	}
	n := &nginxProcess{instance: in}
	n.span()
	if err := n.refresh(); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// span finds the smallest range that holds the role variables, so that one
// read gets all of them. Compilers put them together; if not, they are read
// one by one.
func (n *nginxProcess) span() {
	low, high := ^uint64(0), uint64(0)
	for _, name := range roleNames {
		if s, ok := n.exe.symbols[name]; ok {
			low, high = min(low, s.value), max(high, s.value+8)
		}
	}
	n.low = low + n.bias
	if high-low <= 4096 {
		n.buf = make([]byte, high-low)
	}
}

func (n *nginxProcess) refresh() error {
	if n.buf != nil {
		if err := n.mem.ReadMemory(n.low, n.buf); err != nil {
			return err
		}
	}
	role, err := n.word("ngx_process", 8)
	if err != nil {
		return err
	}
	v := nginxVars{role: role}
	v.worker, _ = n.word("ngx_worker", 8)
	for _, name := range []string{"ngx_exiting", "ngx_quit", "ngx_terminate"} {
		flag, _ := n.word(name, 4)
		v.exiting = v.exiting || flag != 0
	}
	agent, _ := n.word("ngx_is_privileged_agent", 4)
	parent, _ := n.word("ngx_parent", 4)
	v.helper, v.parent = agent != 0, int(int32(parent))
	n.vars = v
	return n.refreshByRole()
}

func (n *nginxProcess) refreshByRole() error {
	switch n.vars.role {
	case roleWorker:
		if !n.started {
			n.started = titled(n.pid)
		}
	case roleMaster, roleSingle:
		if !n.started && n.vars.role == roleSingle {
			n.started = hasEventLoop(n.pid)
		}
		n.refreshCycle()
	}
	return nil
}

// word reads one role variable from the block, or from memory.
func (n *nginxProcess) word(name string, size int) (uint64, error) {
	addr, ok := n.addr(name)
	if !ok {
		return 0, nil
	}
	b := make([]byte, 8)
	if n.buf != nil {
		copy(b, n.buf[addr-n.low:][:size])
	} else if err := n.mem.ReadMemory(addr, b[:size]); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return binary.LittleEndian.Uint64(b), nil
}

// refreshCycle reads names and addresses again once a reload gave the process
// another cycle.
func (n *nginxProcess) refreshCycle() {
	addr, _ := n.addr("ngx_cycle")
	cycle, err := procmem.Uint64(n.mem, addr)
	if err != nil || cycle == 0 || cycle == n.cycle {
		return
	}
	info, ok := readCycle(n.mem, cycle)
	if !ok {
		return
	}
	n.cycle, n.cycleInfo = cycle, info
}

// titled says whether a worker has given itself the title that nginx sets
// once every module has initialized.
func titled(pid int) bool {
	f, err := os.Open(procPath(pid, "cmdline"))
	if err != nil {
		return false
	}
	defer f.Close()
	var title [256]byte // it comes first
	n, _ := f.Read(title[:])
	return bytes.Contains(title[:n], []byte("worker process"))
}

// hasEventLoop tells a running single process from one that still reads its
// configuration, such as "nginx -t": only the former has an epoll instance or
// waits in another event wait.
func hasEventLoop(pid int) bool {
	return inEventWait(pid) || hasEpoll(pid)
}

// hasEpoll says whether an epoll instance is among the first descriptors.
func hasEpoll(pid int) bool {
	fds, err := openNumbers(procPath(pid, "fd"))
	if err != nil {
		return false
	}
	defer fds.close()
	list, _ := fds.list()
	for _, fd := range list[:min(len(list), 1024)] {
		target, err := os.Readlink(procPath(pid, fmt.Sprintf("fd/%d", fd)))
		if err == nil && target == "anon_inode:[eventpoll]" {
			return true
		}
	}
	return false
}

func inEventWait(pid int) bool {
	b, err := os.ReadFile(procPath(pid, "syscall"))
	if err != nil {
		return false
	}
	call, ok := parseSyscall(b)
	return ok && EventWait(Nginx, call.Number)
}
