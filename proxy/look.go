package proxy

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Look is what the kernel says of a worker's thread at one moment.
type Look struct {
	CPUTime  time.Duration // since the thread's start
	RunDelay time.Duration // time it was ready to run but had no CPU, since its start
	Slices   uint64        // how often it was put on a CPU

	Syscall     int64 // it sleeps in this one; -1: in none, or it runs
	Args        [6]uint64
	SP, PC      uint64 // of a thread that does not run; else 0
	Running     bool   // on a CPU, or waiting for one
	InEventWait bool   // it sleeps where its event loop waits for something to do

	// Repeated: the thread did not run since the last look and was in its
	// event wait then, so nothing but the CPU time was read.
	Repeated bool
	// Detailed: the fields below were read.
	Detailed               bool
	State                  byte // as in /proc/PID/status: R, S, D, T, t, Z
	Voluntary, Involuntary uint64
	Stopped                bool // by a signal such as SIGSTOP
	Traced                 bool // a debugger is attached, whether it holds the thread or not
	Tracer                 int
	Frozen                 bool          // by the cgroup freezer
	Throttled              time.Duration // total time in which CPU quotas held up the worker's cgroups
}

// Watcher looks at one worker again and again. It keeps the files of /proc
// open, which makes a look cheap and ties it to the thread: once that has
// ended, every look returns procmem.ErrGone, also if the pid was used again.
// One goroutine may use it; the caller closes it.
type Watcher struct {
	worker                     Worker
	schedstat, syscall, status int // descriptors, -1: not open
	cgroups                    *membership
	buf                        []byte
	last                       Look
	epoll                      tribool
	own                        ownEpoll
}

type tribool uint8

const (
	unknown tribool = iota
	no
	yes
)

// NewWatcher opens what looks at the worker need. The watchers of a goroutine
// share what reads cgroups.
func NewWatcher(w Worker, cgroups *Cgroups) (*Watcher, error) {
	watch := &Watcher{worker: w, buf: make([]byte, 4096), schedstat: -1, syscall: -1, status: -1}
	dir := procPath(w.PID, "task/"+strconv.Itoa(w.TID)+"/")
	for name, fd := range map[string]*int{
		"schedstat": &watch.schedstat, "syscall": &watch.syscall, "status": &watch.status,
	} {
		var err error
		if *fd, err = openRead(dir + name); err != nil {
			watch.Close()
			return nil, goneOr(err)
		}
	}
	if start, err := procmem.StartTime(w.PID); err != nil || start != w.StartTime {
		watch.Close()
		return nil, procmem.ErrGone
	}
	watch.cgroups = cgroups.member(w.PID)
	return watch, nil
}

func goneOr(err error) error {
	if errors.Is(err, os.ErrNotExist) || isESRCH(err) {
		return procmem.ErrGone
	}
	return err
}

// Close releases the files. It may be called twice.
func (w *Watcher) Close() {
	for _, fd := range []*int{&w.schedstat, &w.syscall, &w.status} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
		}
		*fd = -1
	}
	w.cgroups.close()
	w.cgroups = nil
}

// Look reads as little as possible: one file for a worker that is idle, two
// for one that runs; everything for one that sleeps elsewhere.
func (w *Watcher) Look() (Look, error) {
	l, err := w.brief()
	if err == nil && !l.Repeated && !l.Running && !l.InEventWait {
		err = w.detail(&l)
	}
	w.last = l
	return l, err
}

// LookAtQuota is like Look, and reads for a worker that runs or waits for
// events whether its cgroups are frozen and for how long they were throttled.
func (w *Watcher) LookAtQuota() (Look, error) {
	l, err := w.Look()
	if err == nil && !l.Detailed {
		l.Frozen, l.Throttled = w.cgroups.look()
		w.last = l
	}
	return l, err
}

// LookClosely reads everything.
func (w *Watcher) LookClosely() (Look, error) {
	w.last = Look{}
	l, err := w.brief()
	if err == nil {
		err = w.detail(&l)
	}
	w.last = l
	return l, err
}

// Times reads how long the thread has been on a CPU and ready for one since
// its start, and no more.
func (w *Watcher) Times() (cpu, delay time.Duration, err error) {
	cpu, delay, _, err = w.times()
	return cpu, delay, err
}

func (w *Watcher) times() (cpu, delay time.Duration, slices uint64, err error) {
	b, err := w.content(procmem.ReadStart(w.schedstat, w.buf))
	if err != nil {
		return 0, 0, 0, err
	}
	cpu, delay, slices, ok := parseSchedstat(b)
	if !ok {
		return 0, 0, 0, fmt.Errorf("schedstat of thread %d: %q is not three numbers", w.worker.TID, b)
	}
	return cpu, delay, slices, nil
}

func (w *Watcher) brief() (Look, error) {
	cpu, delay, slices, err := w.times()
	if err != nil {
		return Look{}, err
	}
	if w.last.InEventWait && w.last.Slices == slices && w.last.CPUTime == cpu {
		w.last.Repeated, w.last.RunDelay = true, delay
		return w.last, nil
	}
	l := Look{CPUTime: cpu, RunDelay: delay, Slices: slices}
	b, err := w.content(procmem.ReadStart(w.syscall, w.buf))
	if err != nil {
		return l, err
	}
	call, ok := parseSyscall(b)
	if !ok {
		return l, fmt.Errorf("system call of thread %d: %q cannot be understood", w.worker.TID, b)
	}
	l.Running, l.Syscall, l.Args, l.SP, l.PC = call.Running, call.Number, call.Args, call.SP, call.PC
	l.InEventWait = !l.Running && w.EventWait(call.Number) && w.waitsForLoop(call)
	return l, nil
}

// EventWait is like the function EventWait, but knows this worker: one with an
// epoll instance does not wait for events in poll or select. There it waits
// for something else, such as a blocking connect of a library.
func (w *Watcher) EventWait(number int64) bool {
	if !EventWait(w.worker.Kind, number) || epollWaits[number] || w.worker.Kind == Go {
		return EventWait(w.worker.Kind, number)
	}
	if w.epoll == unknown {
		w.epoll = no
		if hasEpoll(w.worker.PID) {
			w.epoll = yes
		}
	}
	return w.epoll == no
}

// waitsForLoop says that an epoll wait is that of nginx's loop: of its first
// argument.
func (w *Watcher) waitsForLoop(call syscallState) bool {
	return w.worker.Kind != Nginx || !epollWaits[call.Number] || w.own.is(w.worker.PID, int(int32(call.Args[0])))
}

func (w *Watcher) detail(l *Look) error {
	b, err := w.content(procmem.ReadStart(w.status, w.buf))
	if err != nil {
		return err
	}
	l.State = statusLetter(b, "State:")
	l.Tracer = int(statusNumber(b, "TracerPid:"))
	l.Voluntary = statusNumber(b, "voluntary_ctxt_switches:")
	l.Involuntary = statusNumber(b, "nonvoluntary_ctxt_switches:")
	l.Stopped, l.Traced = l.State == 'T', l.State == 't' || l.Tracer != 0
	l.Frozen, l.Throttled = w.cgroups.look()
	l.Detailed = true
	if l.State == 'Z' || l.State == 'X' {
		return procmem.ErrGone
	}
	return nil
}

// content is what was read of a small file from its start.
func (w *Watcher) content(n int, err error) ([]byte, error) {
	if n > 0 {
		return w.buf[:n], nil
	}
	if err == nil || isESRCH(err) {
		err = procmem.ErrGone
	}
	return nil, goneOr(err)
}
