package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waiter waits for the ring or for a deadline in Go's own poller, without a
// timer of Go's. The ring's reader would wait in a system call that Go takes
// for a short one: for the first milliseconds of each wait Go's runtime looks
// some fifty times whether it is over. And each of Go's timers that ends wakes
// three threads: the one that waits for files, one that looks whether there is
// more to do, and the one that watches over the others. Either costs an idle
// agent more than all of its work.
type waiter struct {
	files []*os.File
	ring  syscall.RawConn // an epoll instance with the ring and the timer in it
	timer syscall.RawConn
	woken atomic.Bool
}

// newWaiter makes a waiter of a descriptor that tells when it is readable; the
// descriptor stays the caller's.
func newWaiter(fd int) (_ *waiter, err error) {
	w := &waiter{}
	defer func() {
		if err != nil {
			_ = w.close()
		}
	}()
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer of the ring: %w", err)
	}
	if w.timer, err = w.own(timer, "timer"); err != nil {
		return nil, fmt.Errorf("timer of the ring: %w", err)
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll instance of the ring: %w", err)
	}
	for _, of := range []int{fd, timer} {
		if err == nil {
			err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, of, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(of)})
		}
	}
	if err == nil {
		err = unix.SetNonblock(epoll, true) // or Go would not poll it
	}
	if err != nil {
		_ = unix.Close(epoll)
		return nil, fmt.Errorf("epoll instance of the ring: %w", err)
	}
	w.ring, err = w.own(epoll, "ring")
	return w, err
}

// own hands a descriptor over to the waiter.
func (w *waiter) own(fd int, name string) (syscall.RawConn, error) {
	f := os.NewFile(uintptr(fd), name)
	w.files = append(w.files, f)
	return f.SyscallConn()
}

// wait returns nil once there may be something to read, else
// os.ErrDeadlineExceeded or os.ErrClosed. It asks once whether something came
// before it waited.
func (w *waiter) wait(deadline time.Time, ready func() bool) error {
	left := time.Until(deadline)
	if left <= 0 {
		return os.ErrDeadlineExceeded
	}
	if !w.set(left) {
		return os.ErrClosed
	}
	waited := false
	err := w.ring.Read(func(uintptr) bool {
		done := waited || w.woken.Load() || ready()
		waited = true
		return done
	})
	if err != nil {
		return os.ErrClosed // there is no other reason
	}
	if w.woken.Swap(false) || !time.Now().Before(deadline) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// set has the timer end after d. It says no once the waiter is closed.
func (w *waiter) set(d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	err := w.timer.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	return err == nil
}

// wake ends a wait that is going on, or the next one.
func (w *waiter) wake() {
	w.woken.Store(true)
	w.set(1)
}

func (w *waiter) close() (err error) {
	for _, f := range w.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
