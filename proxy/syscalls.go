package proxy

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// call is a system call with a name, and what its arguments mean.
type call struct {
	name     string
	describe func(*describer)
}

// SyscallName returns the name of a native system call, or "system call 999"
// if it has none here.
func SyscallName(number int64) string { return callOf(number).name }

func callOf(number int64) call {
	for _, table := range []map[int64]call{commonCalls, nativeCalls} {
		if c, ok := table[number]; ok {
			return c
		}
	}
	return call{name: fmt.Sprintf("system call %d", number)}
}

// commonCalls exist on every architecture. Those that can block are explained.
var commonCalls = map[int64]call{
	unix.SYS_READ:            {"read", describeFD},
	unix.SYS_WRITE:           {"write", describeFD},
	unix.SYS_PREAD64:         {"pread64", describeFD},
	unix.SYS_PWRITE64:        {"pwrite64", describeFD},
	unix.SYS_READV:           {"readv", describeFD},
	unix.SYS_WRITEV:          {"writev", describeFD},
	unix.SYS_PREADV:          {"preadv", describeFD},
	unix.SYS_PWRITEV:         {"pwritev", describeFD},
	unix.SYS_RECVFROM:        {"recvfrom", describeFD},
	unix.SYS_SENDTO:          {"sendto", describeFD},
	unix.SYS_RECVMSG:         {"recvmsg", describeFD},
	unix.SYS_SENDMSG:         {"sendmsg", describeFD},
	unix.SYS_RECVMMSG:        {"recvmmsg", describeFD},
	unix.SYS_SENDMMSG:        {"sendmmsg", describeFD},
	unix.SYS_ACCEPT:          {"accept", describeFD},
	unix.SYS_ACCEPT4:         {"accept4", describeFD},
	unix.SYS_CONNECT:         {"connect", describeFD},
	unix.SYS_SHUTDOWN:        {"shutdown", describeFD},
	unix.SYS_SENDFILE:        {"sendfile", describeFD},
	unix.SYS_SPLICE:          {"splice", describeFD},
	unix.SYS_COPY_FILE_RANGE: {"copy_file_range", describeFD},
	unix.SYS_FSYNC:           {"fsync", describeFD},
	unix.SYS_FDATASYNC:       {"fdatasync", describeFD},
	unix.SYS_SYNC_FILE_RANGE: {"sync_file_range", describeFD},
	unix.SYS_FTRUNCATE:       {"ftruncate", describeFD},
	unix.SYS_FALLOCATE:       {"fallocate", describeFD},
	unix.SYS_FLOCK:           {"flock", describeFD},
	unix.SYS_FCNTL:           {"fcntl", describeFD},
	unix.SYS_IOCTL:           {"ioctl", describeFD},
	unix.SYS_FSTAT:           {"fstat", describeFD},
	unix.SYS_LSEEK:           {"lseek", describeFD},
	unix.SYS_CLOSE:           {"close", describeFD},
	unix.SYS_GETDENTS64:      {"getdents64", describeFD},
	unix.SYS_READAHEAD:       {"readahead", describeFD},
	unix.SYS_OPENAT:          {"openat", describePath(1)},
	unix.SYS_UNLINKAT:        {"unlinkat", describePath(1)},
	unix.SYS_MKDIRAT:         {"mkdirat", describePath(1)},
	unix.SYS_RENAMEAT2:       {"renameat2", describePath(1)},
	unix.SYS_FACCESSAT:       {"faccessat", describePath(1)},
	unix.SYS_STATX:           {"statx", describePath(1)},
	unix.SYS_STATFS:          {"statfs", describePath(0)},
	unix.SYS_TRUNCATE:        {"truncate", describePath(0)},
	unix.SYS_EXECVE:          {"execve", describePath(0)},
	unix.SYS_FUTEX:           {"futex", describeFutex},
	unix.SYS_WAIT4:           {"wait4", describeChild(0)},
	unix.SYS_WAITID:          {"waitid", describeChild(1)},
	unix.SYS_NANOSLEEP:       {"nanosleep", describeSleep(0)},
	unix.SYS_CLOCK_NANOSLEEP: {"clock_nanosleep", describeSleep(2)},
	unix.SYS_PPOLL:           {"ppoll", describePollFDs},
	unix.SYS_PSELECT6:        {"pselect6", nil},
	unix.SYS_EPOLL_PWAIT:     {"epoll_pwait", describeFD},
	unix.SYS_EPOLL_PWAIT2:    {"epoll_pwait2", describeFD},
	unix.SYS_EPOLL_CTL:       {"epoll_ctl", describeFD},
	unix.SYS_IO_URING_ENTER:  {"io_uring_enter", describeFD},
	unix.SYS_IO_GETEVENTS:    {"io_getevents", nil},
	unix.SYS_IO_SUBMIT:       {"io_submit", nil},
	unix.SYS_SEMTIMEDOP:      {"semtimedop", nil},
	unix.SYS_SEMOP:           {"semop", nil},
	unix.SYS_MSYNC:           {"msync", nil},
	unix.SYS_MMAP:            {"mmap", nil},
	unix.SYS_MUNMAP:          {"munmap", nil},
	unix.SYS_MADVISE:         {"madvise", nil},
	unix.SYS_BRK:             {"brk", nil},
	unix.SYS_SYNC:            {"sync", nil},
	unix.SYS_CLONE:           {"clone", nil},
	unix.SYS_CLONE3:          {"clone3", nil},
	unix.SYS_EXIT_GROUP:      {"exit_group", nil},
	unix.SYS_SCHED_YIELD:     {"sched_yield", nil},
	unix.SYS_GETRANDOM:       {"getrandom", nil},
	unix.SYS_RT_SIGSUSPEND:   {"rt_sigsuspend", nil},
	unix.SYS_RT_SIGTIMEDWAIT: {"rt_sigtimedwait", nil},
	unix.SYS_MEMBARRIER:      {"membarrier", nil},
}
