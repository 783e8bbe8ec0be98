package bpf

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waiter waits for the ring in Go's own poller. The ring's reader would wait
// in a system call that Go takes for a short one: for the first milliseconds
// of each wait Go's runtime looks some fifty times whether it is over, which
// costs an idle agent more than all of its work.
type waiter struct {
	file *os.File
	conn syscall.RawConn
}

// newWaiter makes a waiter of a descriptor that tells when it is readable; the
// descriptor stays the caller's.
func newWaiter(fd int) (*waiter, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("descriptor of the ring: %w", err)
	}
	if err := unix.SetNonblock(own, true); err != nil {
		_ = unix.Close(own)
		return nil, fmt.Errorf("descriptor of the ring: %w", err)
	}
	w := &waiter{file: os.NewFile(uintptr(own), "ring")}
	if w.conn, err = w.file.SyscallConn(); err != nil {
		_ = w.file.Close()
		return nil, fmt.Errorf("descriptor of the ring: %w", err)
	}
	return w, nil
}

// wait returns nil once there may be something to read, else
// os.ErrDeadlineExceeded or os.ErrClosed.
func (w *waiter) wait(deadline time.Time) error {
	if err := w.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	waited := false
	err := w.conn.Read(func(uintptr) bool {
		done := waited
		waited = true
		return done
	})
	for _, known := range []error{os.ErrDeadlineExceeded, os.ErrClosed} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// wake ends a wait that is going on.
func (w *waiter) wake() { _ = w.file.SetReadDeadline(longAgo) }

func (w *waiter) close() error { return w.file.Close() }
