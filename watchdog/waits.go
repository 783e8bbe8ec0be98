package watchdog

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// waitCounter counts how often one thread enters the system calls in which an
// event loop waits, and any system call but those that read a clock. It costs
// that thread something, so it runs only while there is a doubt.
type waitCounter struct {
	waits  []int // counters of the kernel
	all    []int
	clocks []int
}

// The tracepoints of the calls, as the kernel names them.
var (
	waitEvents = []string{"syscalls/sys_enter_epoll_wait", "syscalls/sys_enter_epoll_pwait"}
	callEvents = []string{"raw_syscalls/sys_enter"}
	// HAProxy reads the CPU time of its thread twice in a turn, which is a system
	// call, and so is every look at the time where the vDSO can't tell it. A turn
	// that calls nothing else does no work.
	clockEvents = []string{"syscalls/sys_enter_clock_gettime", "syscalls/sys_enter_gettimeofday"}
)

// openWaitCounter returns a counter of the thread. Where the kernel offers no
// tracepoints it counts nothing and says so.
func openWaitCounter(tid int) *waitCounter {
	return &waitCounter{waits: openCounters(tid, waitEvents), all: openCounters(tid, callEvents), clocks: openCounters(tid, clockEvents)}
}

func openCounters(tid int, events []string) (fds []int) {
	for _, name := range events {
		id, ok := tracepoint(name)
		if !ok {
			continue
		}
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
}

// read returns the counts so far and whether both are being counted.
func (c *waitCounter) read() (waits, calls uint64, counting bool) {
	if c == nil {
		return 0, 0, false
	}
	waits, ok := sumCounters(c.waits)
	clocks, _ := sumCounters(c.clocks) // before all calls, of which they are some
	calls, too := sumCounters(c.all)
	return waits, calls - min(clocks, calls), ok && too
}

func sumCounters(fds []int) (total uint64, ok bool) {
	for _, fd := range fds {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); err != nil || n != len(b) {
			return 0, false
		}
		total += binary.NativeEndian.Uint64(b[:])
	}
	return total, len(fds) > 0
}

func (c *waitCounter) close() {
	if c == nil {
		return
	}
	for _, fd := range slices.Concat(c.waits, c.all, c.clocks) {
		_ = unix.Close(fd)
	}
	c.waits, c.all, c.clocks = nil, nil, nil
}
