package procmem

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrGone is returned once the process has ended or its pid was reused.
var ErrGone = errors.New("process is gone")

// Process is an open handle on a running process. The handle belongs to the
// process instance, not to its pid: once that instance ends, reads fail with
// ErrGone. Goroutines may share it; the caller closes it.
type Process struct {
	PID       int
	StartTime uint64 // clock ticks since boot, field 22 of /proc/PID/stat
	pidfd     int

	open sync.RWMutex // held while mem is read, so that it is not closed then
	mem  int          // /proc/PID/mem, -1: closed
}

// Open opens the process with the given pid.
func Open(pid int) (*Process, error) {
	start, err := StartTime(pid)
	if err != nil {
		return nil, err
	}
	mem, err := unix.Open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, gone(err)
	}
	p := &Process{PID: pid, StartTime: start, pidfd: -1, mem: mem}
	// Without pidfd_open (before 5.3, or refused) Signal reports the error.
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		p.pidfd = fd
	}
	if again, err := StartTime(pid); err != nil || again != start {
		_ = p.Close()
		return nil, ErrGone
	}
	return p, nil
}

// Close releases the handle.
func (p *Process) Close() error {
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
		p.pidfd = -1
	}
	p.open.Lock()
	defer p.open.Unlock()
	if p.mem < 0 {
		return os.ErrClosed
	}
	err := unix.Close(p.mem)
	p.mem = -1
	return err
}

// ReadMemory implements Memory on the live process.
func (p *Process) ReadMemory(addr uint64, buf []byte) error {
	if addr > 1<<63-1 {
		return fmt.Errorf("address %#x is not a user address", addr)
	}
	p.open.RLock()
	n, err := pread(p.mem, buf, int64(addr))
	p.open.RUnlock()
	switch {
	case n == len(buf):
		return nil
	case err == nil:
		err = io.EOF
	}
	// The kernel reads nothing, without error, once the memory is given up; an
	// address that is not mapped is an error, and common.
	if errors.Is(err, io.EOF) && !p.Alive() {
		return ErrGone
	}
	return &readError{p.PID, addr, len(buf), err}
}

// ReadMany fills as many of the windows, in their order, as it can in one go,
// and returns how many that were: the next one can't be read. An error means
// that the process is gone, or that the kernel refuses to do this at all.
func (p *Process) ReadMany(list []Window) (filled int, err error) {
	local, remote := make([]unix.Iovec, len(list)), make([]unix.RemoteIovec, len(list))
	for i, w := range list {
		local[i].Base = unsafe.SliceData(w.Data)
		local[i].SetLen(len(w.Data))
		remote[i] = unix.RemoteIovec{Base: uintptr(w.Addr), Len: len(w.Data)}
	}
	n, err := readv(p.PID, local, remote)
	switch {
	case p.pidfd < 0:
		return 0, errNoPIDFD
	case errors.Is(err, unix.EFAULT):
		n = 0
	case err != nil:
		return 0, gone(err)
	}
	if !p.Alive() { // it went by the pid, which may be another process's by now
		return 0, ErrGone
	}
	for ; filled < len(list) && n >= len(list[filled].Data); filled++ {
		n -= len(list[filled].Data)
	}
	return filled, nil
}

var errNoPIDFD = errors.New("no pidfd: the kernel is older than 5.3 or refused pidfd_open")

// readError becomes text only for who wants it: searches in memory meet many.
type readError struct {
	pid  int
	addr uint64
	n    int
	err  error
}

func (e *readError) Error() string {
	return fmt.Sprintf("%d bytes at %#x of pid %d: %v", e.n, e.addr, e.pid, e.err)
}

// Alive says whether the very process that was opened still runs. A zombie
// does not.
func (p *Process) Alive() bool {
	if p.pidfd >= 0 {
		// It is readable once the process has ended, whoever has its pid then.
		if ended, err := readable(p.pidfd); err == nil {
			return !ended
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	fields := AfterComm(stat)
	return len(fields) > 19 && fields[0][0] != 'Z' && string(fields[19]) == strconv.FormatUint(p.StartTime, 10)
}

// Signal sends a signal through the pidfd, so that a reused pid is never hit.
// It returns ErrGone if the process has ended.
func (p *Process) Signal(sig unix.Signal) error {
	if p.pidfd < 0 {
		return errNoPIDFD
	}
	err := unix.PidfdSendSignal(p.pidfd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// PIDFD returns the pidfd, which polls readable once the process ends, or -1.
func (p *Process) PIDFD() int { return p.pidfd }

// StartTime reads the start time of a process in clock ticks since boot.
func StartTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, gone(err)
	}
	fields := AfterComm(stat)
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields after the name, want 20", pid, len(fields))
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// AfterComm splits a line of /proc/PID/stat behind the process name, which may
// itself hold spaces and parentheses. Element 0 is the state (field 3).
func AfterComm(stat []byte) [][]byte {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return nil
	}
	return bytes.Fields(stat[i+1:])
}

// ExePath returns where the executable of a process was started from, with the
// kernel's " (deleted)" mark taken off.
func ExePath(pid int) (string, error) {
	path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if err != nil {
		return "", gone(err)
	}
	return string(bytes.TrimSuffix([]byte(path), []byte(" (deleted)"))), nil
}

func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}
