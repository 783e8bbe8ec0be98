package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clocks reads the CPU clocks of processes again and again.
type clocks struct {
	end, done chan struct{}

	mu   sync.Mutex
	read map[int][]reading // by pid
}

// reading is one look at a CPU clock.
type reading struct {
	at  time.Time
	cpu time.Duration
}

const clockEvery = 2 * time.Millisecond

// startClocks starts a reader that reads nothing yet. Stop it after everything
// that was started meanwhile: its thread ends with it, and a process whose
// parent thread ends is killed.
func startClocks() *clocks {
	c := &clocks{end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		runtime.LockOSThread()
		// Never unlocked, so that the priority ends with the thread. It sleeps
		// in the kernel: Go's own timers come late where all cores are busy.
		preferred()
		every := unix.NsecToTimespec(int64(clockEvery))
		for {
			select {
			case <-c.end:
				return
			default:
				_ = unix.Nanosleep(&every, nil)
				c.readAll()
			}
		}
	}()
	return c
}

// preferred makes this thread one that the scheduler prefers to all others: a
// clock that is read late is a wrong clock.
func preferred() {
	realtime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if unix.SchedSetAttr(0, &realtime, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
	}
}

func (c *clocks) stop() {
	close(c.end)
	<-c.done
}

// watch reads the clocks of these processes from now on, and forgets what was read.
func (c *clocks) watch(pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = map[int][]reading{}
	for _, pid := range pids {
		c.read[pid] = nil
	}
}

// reading waits until each clock was read once.
func (c *clocks) reading(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		unread := 0
		for _, list := range c.read {
			if len(list) == 0 {
				unread++
			}
		}
		c.mu.Unlock()
		if unread == 0 {
			return
		}
		pause(ctx, clockEvery)
	}
}

func (c *clocks) readAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid, list := range c.read {
		var t unix.Timespec
		if unix.ClockGettime(processClock(pid), &t) == nil {
			c.read[pid] = append(list, reading{time.Now(), time.Duration(t.Nano())})
		}
	}
}

var errUnread = errors.New("its CPU clock was not read")

// processClock is the identifier of a process's CPU clock, as clock_getcpuclockid makes it.
func processClock(pid int) int32 { return int32(^pid)<<3 | 2 }

// between returns what the clock of a process went on between two moments. It
// waits until one after the second was read: errUnread if there was none.
func (c *clocks) between(ctx context.Context, pid int, from, to time.Time) (time.Duration, error) {
	var list []reading
	for range 500 {
		c.mu.Lock()
		list = slices.Clone(c.read[pid])
		c.mu.Unlock()
		if n := len(list); n > 0 && list[n-1].at.After(to) {
			break
		}
		pause(ctx, clockEvery)
	}
	before, err := at(list, from)
	if err != nil {
		return 0, fmt.Errorf("worker %d: %w", pid, err)
	}
	after, err := at(list, to)
	if err != nil {
		return 0, fmt.Errorf("worker %d: %w", pid, err)
	}
	return after - before, nil
}

// at interpolates between the readings before and after a moment.
func at(list []reading, when time.Time) (time.Duration, error) {
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if when.Before(a.at) || when.After(b.at) {
			continue
		}
		part := float64(when.Sub(a.at)) / float64(b.at.Sub(a.at))
		return a.cpu + time.Duration(part*float64(b.cpu-a.cpu)), nil
	}
	return 0, fmt.Errorf("%w around %v", errUnread, when.Format("15:04:05.000"))
}
