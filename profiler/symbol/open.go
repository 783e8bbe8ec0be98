package symbol

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// openMapped opens the file of a mapping. /proc/PID/map_files leads to the
// very file, deleted or not; it needs CAP_SYS_ADMIN or
// CAP_CHECKPOINT_RESTORE. The other ways lead to a name, so what they find
// must prove to be the same file.
func openMapped(pid int, m procmem.Mapping) (*os.File, fileKey, error) {
	if m.Inode == 0 {
		return nil, fileKey{}, fmt.Errorf("mapping %x-%x %s: no file behind it", m.Start, m.End, m.Path)
	}
	exact := fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End)
	f, key, err := openRegular(exact)
	if err == nil {
		return f, key, nil
	}
	f, key, err = openNamed(m,
		func() (*os.File, fileKey, error) { return openRegular(fmt.Sprintf("/proc/%d/exe", pid)) },
		func() (*os.File, fileKey, error) { return openInRoot(pid, pathInRoot(pid, m.Path)) })
	if err != nil {
		return nil, fileKey{}, fmt.Errorf("image of pid %d: %w", pid, err)
	}
	return f, key, nil
}

// openNamed tries ways that lead to a name, and takes the first file that is
// the mapped one.
func openNamed(m procmem.Mapping, ways ...func() (*os.File, fileKey, error)) (*os.File, fileKey, error) {
	err := fmt.Errorf("%s: not found", m.Path)
	for _, open := range ways {
		f, key, openErr := open()
		if openErr != nil {
			err = openErr
			continue
		}
		if key.inode == m.Inode && deviceName(key.dev) == normalDevice(m.Dev) {
			return f, key, nil
		}
		f.Close()
		err = fmt.Errorf("%s: another file than the one that is mapped", m.Path)
	}
	return nil, fileKey{}, err
}

// openRegular opens a regular file; anything else could block or act.
func openRegular(path string) (*os.File, fileKey, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileKey{}, err
	}
	return regular(f)
}

// pathInRoot gives the path by which a process knows a file that is mapped. Of
// one that only changed its root, and not its mounts, the kernel tells paths
// from our root on.
func pathInRoot(pid int, path string) string {
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
	if rest, ok := strings.CutPrefix(path, root); err == nil && root != "/" && ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

// openInRoot opens a path as a process sees it; no link leads out of its root.
func openInRoot(pid int, path string) (*os.File, fileKey, error) {
	root, err := os.Open(fmt.Sprintf("/proc/%d/root", pid))
	if err != nil {
		return nil, fileKey{}, err
	}
	defer root.Close()
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	fd, err := unix.Openat2(int(root.Fd()), path, &how)
	if err != nil {
		return nil, fileKey{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return regular(os.NewFile(uintptr(fd), path))
}

func regular(f *os.File) (*os.File, fileKey, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, fileKey{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		f.Close()
		return nil, fileKey{}, fmt.Errorf("%s: no inode number", f.Name())
	}
	return f, fileKey{dev: uint64(st.Dev), inode: st.Ino, mtime: info.ModTime().UnixNano(), size: info.Size()}, nil
}

func deviceName(dev uint64) string {
	return fmt.Sprintf("%x:%x", unix.Major(dev), unix.Minor(dev))
}

// normalDevice strips the leading zeros of "08:01".
func normalDevice(dev string) string {
	major, minor, _ := strings.Cut(dev, ":")
	trim := func(s string) string {
		if s = strings.TrimLeft(s, "0"); s == "" {
			return "0"
		}
		return s
	}
	return trim(major) + ":" + trim(minor)
}
