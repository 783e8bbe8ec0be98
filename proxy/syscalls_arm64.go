package proxy

import "golang.org/x/sys/unix"

const futexNumber = unix.SYS_FUTEX

var eventWaits = map[int64]bool{
	unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true, unix.SYS_PPOLL: true, unix.SYS_PSELECT6: true,
}
