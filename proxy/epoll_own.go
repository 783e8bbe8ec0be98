package proxy

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ownEpoll knows which epoll instance is the event loop's: the one in which
// the listening sockets are registered. A library may wait in one of its own,
// and the loop stands still meanwhile.
type ownEpoll struct {
	fd    int // 0: not known; then any is believed to be it
	tried int // the last one that was found to be none
}

// is says whether a wait for the descriptor is one of the event loop.
func (o *ownEpoll) is(pid, fd int) bool {
	if o.fd == 0 && fd > 0 && fd != o.tried {
		o.tried = fd
		if listensIn(pid, fd) {
			o.fd = fd
		}
	}
	return o.fd == 0 || fd == o.fd
}

// listensIn says whether a listening socket is registered with an epoll
// descriptor. Sockets that listen were opened first, so a look at the lowest
// descriptors is enough.
func listensIn(pid, epoll int) bool {
	const most = 64
	info, err := os.ReadFile(procPath(pid, fmt.Sprintf("fdinfo/%d", epoll)))
	if err != nil {
		return false
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(handle) }()
	list := parseEpoll(info)
	slices.SortFunc(list, func(a, b registered) int { return cmp.Compare(a.fd, b.fd) })
	return slices.ContainsFunc(list[:min(len(list), most)], func(r registered) bool { return listens(handle, r.fd) })
}

func listens(handle, fd int) bool {
	own, err := unix.PidfdGetfd(handle, fd, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(own) }()
	listening, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && listening == 1
}
