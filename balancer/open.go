package balancer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// reopen makes l.f the file that lies at the path now. Somebody may have
// replaced or removed it; the workers follow the path too.
func (l *Ledger) reopen() error {
	if l.f != nil {
		here, err := l.f.Stat()
		there, err2 := os.Lstat(l.path)
		if err == nil && err2 == nil && os.SameFile(here, there) {
			return nil
		}
		_ = l.f.Close()
		l.f = nil
	}
	f, err := openTrusted(l.path)
	if errors.Is(err, os.ErrNotExist) {
		if err := create(l.path); err != nil {
			return err
		}
		f, err = openTrusted(l.path)
	}
	if err != nil {
		return err
	}
	l.f = f
	return nil
}

func openTrusted(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("ledger %s: is a symbolic link; remove it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := trusted(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	return f, nil
}

// trusted refuses a file through which somebody else could speak to the
// workers.
func trusted(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}
	if stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to uid %d; chown it to root", stat.Uid)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("has mode %o: others may write to it; chmod it to 644", perm)
	}
	if stat.Nlink > 1 {
		return fmt.Errorf("has %d hard links; remove the others", stat.Nlink)
	}
	return nil
}

// create puts an empty ledger at the path, whole or not at all. If another
// process is quicker, its file stays.
func create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("ledger: %v", err)
	}
	tmp, err := os.CreateTemp(dir, ".ledger-*")
	if err != nil {
		return fmt.Errorf("ledger: %v", err)
	}
	defer func() {
		_ = tmp.Close()
		_ = os.Remove(tmp.Name())
	}()
	if err := errors.Join(repair(tmp), tmp.Chmod(0o644)); err != nil {
		return fmt.Errorf("ledger %s: %v", path, err)
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("ledger: %v", err)
	}
	return nil
}
