package watchdog

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// waitCounter counts how often one thread enters the system calls in which an
// event loop waits. It costs that thread something, so it runs only while
// there is a doubt.
type waitCounter struct {
	fds []int
}

// The tracepoints of the calls, as the kernel names them.
var waitEvents = []string{"sys_enter_epoll_wait", "sys_enter_epoll_pwait"}

// openWaitCounter returns a counter of the thread. Where the kernel offers no
// tracepoints it counts nothing and says so.
func openWaitCounter(tid int) *waitCounter {
	c := &waitCounter{}
	for _, name := range waitEvents {
		id, ok := tracepoint(name)
		if !ok {
			continue
		}
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil {
			c.fds = append(c.fds, fd)
		}
	}
	return c
}

// read returns the count so far and whether anything is being counted.
func (c *waitCounter) read() (uint64, bool) {
	if c == nil || len(c.fds) == 0 {
		return 0, false
	}
	var total uint64
	for _, fd := range c.fds {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); err != nil || n != len(b) {
			return 0, false
		}
		total += binary.NativeEndian.Uint64(b[:])
	}
	return total, true
}

func (c *waitCounter) close() {
	if c == nil {
		return
	}
	for _, fd := range c.fds {
		_ = unix.Close(fd)
	}
	c.fds = nil
}
