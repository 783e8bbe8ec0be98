package proxy

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadyFD is a descriptor of a process that its event loop is told of in each
// turn: it is ready, and registered so that readiness is reported again and
// again until somebody takes it away.
type ReadyFD struct {
	FD     int
	Events string // what epoll reports, such as "EPOLLIN|EPOLLHUP"
	What   string // the file, socket or pipe
	Peer   string // remote address of a socket
	Closed bool   // the process has closed it, yet its epoll still holds the file
}

func (r ReadyFD) String() string {
	text := fmt.Sprintf("fd %d (%s), always ready: %s", r.FD, r.What, r.Events)
	if r.Closed {
		text = fmt.Sprintf("fd %d (closed here, but another descriptor keeps the file and its registration alive), always ready", r.FD)
	}
	return text
}

// Bounds: descriptors of epoll, and what is registered with each.
const (
	epollsMax     = 16
	registeredMax = 4096
)

// registered is one line of an epoll descriptor's fdinfo.
type registered struct {
	fd     int
	events uint32
}

// AlwaysReady returns the descriptors that keep the event loop of a process
// awake. It copies descriptors for a moment to ask the kernel what is ready,
// so it is for a process that was found to spin. What ended meanwhile is left
// out; an error is for a process that is gone or can't be looked into.
func AlwaysReady(pid int) ([]ReadyFD, error) {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(handle) }()
	var ready []ReadyFD
	epolls := 0
	for _, n := range names {
		if link, err := os.Readlink(dir + n.Name()); err != nil || link != "anon_inode:[eventpoll]" || epolls >= epollsMax {
			continue
		}
		epolls++
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, n.Name()))
		if err != nil {
			continue
		}
		for _, r := range parseEpoll(info) {
			if f, ok := isReady(pid, handle, r); ok {
				ready = append(ready, f)
			}
		}
	}
	slices.SortFunc(ready, func(a, b ReadyFD) int { return a.FD - b.FD })
	return ready, nil
}

// parseEpoll reads lines such as "tfd:       12 events:       19 data: ...".
func parseEpoll(info []byte) (list []registered) {
	for line := range bytes.Lines(info) {
		f := bytes.Fields(line)
		if len(f) < 4 || string(f[0]) != "tfd:" || string(f[2]) != "events:" || len(list) >= registeredMax {
			continue
		}
		fd, err := strconv.Atoi(string(f[1]))
		events, err2 := strconv.ParseUint(string(f[3]), 16, 32)
		if err == nil && err2 == nil && fd >= 0 {
			list = append(list, registered{fd, uint32(events)})
		}
	}
	return list
}

// isReady says whether the kernel reports the descriptor at each wait. One
// that is registered edge-triggered is reported once only.
func isReady(pid, handle int, r registered) (ReadyFD, bool) {
	const always = unix.EPOLLERR | unix.EPOLLHUP
	if r.events&unix.EPOLLET != 0 || r.events&^(unix.EPOLLONESHOT|unix.EPOLLEXCLUSIVE|unix.EPOLLWAKEUP) == 0 {
		return ReadyFD{}, false
	}
	if fdTarget(pid, r.fd) == "" {
		return ReadyFD{FD: r.fd, Closed: true}, true
	}
	fd, err := unix.PidfdGetfd(handle, r.fd, 0)
	if err != nil {
		return ReadyFD{}, false
	}
	defer func() { _ = unix.Close(fd) }()
	p := []unix.PollFd{{Fd: int32(fd), Events: int16(r.events & 0x7fff)}}
	if n, err := unix.Poll(p, 0); err != nil || n == 0 {
		return ReadyFD{}, false
	}
	events := uint32(uint16(p[0].Revents)) & (r.events | always)
	what, peer := describeReady(pid, r.fd)
	return ReadyFD{FD: r.fd, Events: eventNames(events), What: what, Peer: peer}, events != 0
}

// describeReady explains a descriptor as that of a system call is.
func describeReady(pid, fd int) (what, peer string) {
	var w Wait
	d := describer{pid: pid, wait: &w}
	d.fd(fd)
	return strings.TrimPrefix(w.Text, ": "), w.Peer
}

func eventNames(events uint32) string {
	var names []string
	for _, e := range []struct {
		bit  uint32
		name string
	}{
		{unix.EPOLLIN, "EPOLLIN"}, {unix.EPOLLPRI, "EPOLLPRI"}, {unix.EPOLLOUT, "EPOLLOUT"},
		{unix.EPOLLERR, "EPOLLERR"}, {unix.EPOLLHUP, "EPOLLHUP"}, {unix.EPOLLRDHUP, "EPOLLRDHUP"},
	} {
		if events&e.bit != 0 {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, "|")
}
