package proxy

import "golang.org/x/sys/unix"

const futexNumber = unix.SYS_FUTEX

var eventWaits = map[int64]bool{
	unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true, unix.SYS_PPOLL: true, unix.SYS_PSELECT6: true,
}

// epollWaits are the event waits on an epoll instance.
var epollWaits = map[int64]bool{
	unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
}

// nativeCalls are those that only this architecture has.
var nativeCalls = map[int64]call{
	unix.SYS_FSTATAT: {"newfstatat", describePath(1)},
}
