package procmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The reads of this package are system calls of which Go's scheduler is not
// told. It would take each for one that may last, and wakes the thread that
// looks after such calls: where the program rests between its reads, that
// takes a fifth of its CPU time. What is read here is memory and small files of
// the kernel; if a page must come from a disk first, a collection of garbage
// waits for it.

// pread is like pread(2), of an open descriptor.
func pread(fd int, buf []byte, offset int64) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), uintptr(offset), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}

// readv is like process_vm_readv(2).
func readv(pid int, local []unix.Iovec, remote []unix.RemoteIovec) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(unsafe.SliceData(local))), uintptr(len(local)),
		uintptr(unsafe.Pointer(unsafe.SliceData(remote))), uintptr(len(remote)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// readable says whether a descriptor is readable now.
func readable(fd int) (bool, error) {
	fds, at := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}, unix.Timespec{}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return n > 0, nil
}

// ReadStart reads from the start of a file of the kernel that lets no reader
// wait, such as those in /proc and of cgroups, as much as buf takes. The caller
// keeps the descriptor open.
func ReadStart(fd int, buf []byte) (int, error) { return pread(fd, buf, 0) }
