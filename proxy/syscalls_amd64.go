package proxy

import "golang.org/x/sys/unix"

const futexNumber = unix.SYS_FUTEX

var eventWaits = map[int64]bool{
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
	unix.SYS_POLL: true, unix.SYS_PPOLL: true, unix.SYS_SELECT: true, unix.SYS_PSELECT6: true,
}

// epollWaits are the event waits on an epoll instance.
var epollWaits = map[int64]bool{
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
}

// nativeCalls are those that only this architecture has.
var nativeCalls = map[int64]call{
	unix.SYS_OPEN:       {"open", describePath(0)},
	unix.SYS_STAT:       {"stat", describePath(0)},
	unix.SYS_LSTAT:      {"lstat", describePath(0)},
	unix.SYS_ACCESS:     {"access", describePath(0)},
	unix.SYS_NEWFSTATAT: {"newfstatat", describePath(1)},
	unix.SYS_UNLINK:     {"unlink", describePath(0)},
	unix.SYS_RENAME:     {"rename", describePath(0)},
	unix.SYS_MKDIR:      {"mkdir", describePath(0)},
	unix.SYS_POLL:       {"poll", describePollFDs},
	unix.SYS_SELECT:     {"select", nil},
	unix.SYS_EPOLL_WAIT: {"epoll_wait", describeFD},
	unix.SYS_PAUSE:      {"pause", nil},
	unix.SYS_FORK:       {"fork", nil},
	unix.SYS_VFORK:      {"vfork", nil},
}
