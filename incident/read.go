package incident

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// Load reads one incident. A malformed id gives ErrBadID, an unknown one
// ErrNotFound.
func (s *Store) Load(id string) (*Incident, error) {
	f, err := s.File(id, JSONFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	inc, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("incident %s: %w", id, err)
	}
	if inc.ID != id {
		return nil, fmt.Errorf("incident %s: its %s speaks of %s", id, JSONFile, inc.ID)
	}
	return inc, nil
}

// File opens one file of an incident for reading; the caller closes it. It
// follows no symbolic link and opens only regular files.
func (s *Store) File(id, name string) (*os.File, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if err := checkFile(name); err != nil {
		return nil, err
	}
	full := path.Join(id, name)
	if fi, err := s.root.Lstat(full); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s/%s is not a regular file", ErrBadFile, id, name)
	}
	f, err := s.root.OpenFile(full, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s/%s", ErrNotFound, id, name)
	}
	if err != nil {
		return nil, fmt.Errorf("incident %s: %s", id, err)
	}
	return f, nil
}

// FileInfo describes one file of an incident.
type FileInfo struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Files lists the files of an incident by name.
func (s *Store) Files(id string) ([]FileInfo, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	d, err := s.root.Open(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var out []FileInfo
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && checkFile(e.Name()) == nil {
			out = append(out, FileInfo{e.Name(), fi.Size()})
		}
	}
	slices.SortFunc(out, func(a, b FileInfo) int { return compare(a.Name, b.Name) })
	return out, nil
}

// readFile returns a file of at most limit bytes, or nil.
func (s *Store) readFile(id, name string, limit int64) []byte {
	f, err := s.File(id, name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(data)) > limit {
		return nil
	}
	return data
}
