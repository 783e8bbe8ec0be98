package watchdog

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWaitCounterCountsEventWaits(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := openWaitCounter(unix.Gettid())
	defer c.close()
	before, callsBefore, ok := c.read()
	if !ok {
		if os.Getenv("REQUIRE_BPF") != "" {
			t.Fatal("no tracepoints of system calls")
		}
		t.Skip("no tracepoints of system calls")
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	for range 7 {
		if _, err := unix.EpollWait(fd, make([]unix.EpollEvent, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	var at unix.Timespec
	for range 1000 { // the CPU time of a thread is nothing that the vDSO tells
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
			t.Fatal(err)
		}
	}
	after, callsAfter, _ := c.read()
	if after-before != 7 {
		t.Errorf("counted %d event waits, want 7", after-before)
	}
	if calls := callsAfter - callsBefore; calls < 8 || calls > 500 { // those, and the one that made the descriptor, and what the runtime needs
		t.Errorf("counted %d system calls, want at least 8 and none that read a clock", calls)
	}
}

func TestNoWaitCounterCountsNothing(t *testing.T) {
	var c *waitCounter
	if _, _, ok := c.read(); ok {
		t.Error("a counter that is not there counts")
	}
	c.close()
}
