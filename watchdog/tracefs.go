package watchdog

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// tracepoint returns the number of a tracepoint, such as
// syscalls/sys_enter_epoll_wait. It
// reads tracefs where it is mounted, else through a mount of its own that
// nobody else sees: hosts need not mount it for us.
func tracepoint(name string) (uint64, bool) {
	path := "events/" + name + "/id"
	for _, root := range []string{"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"} {
		if text, err := os.ReadFile(root + path); err == nil {
			return parseID(string(text))
		}
	}
	root, err := ownTracefs()
	if err != nil {
		return 0, false
	}
	fd, err := unix.Openat(root, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return 0, false
	}
	return parseID(string(text))
}

func parseID(text string) (uint64, bool) {
	id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	return id, err == nil
}

// ownTracefs returns a directory descriptor of a detached mount of tracefs. It
// is made once and stays open.
var ownTracefs = sync.OnceValues(func() (int, error) {
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY)
})
