package incident

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Create writes the folder of a new incident: incident.json, report.html and
// the given files, by name. The folder appears whole, and on the disk, or not
// at all. An id that is there already gives ErrExists.
func (s *Store) Create(inc *Incident, files map[string][]byte) error {
	if err := s.writable(inc, files); err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if _, err := s.root.Lstat(inc.ID); err == nil {
		return fmt.Errorf("%w: %s", ErrExists, inc.ID)
	}
	all, err := s.contents(inc, files)
	if err != nil {
		return err
	}
	if err := s.createFolder(inc.ID, all); err != nil {
		return fmt.Errorf("incident %s: %s", inc.ID, explain(err))
	}
	s.remember(inc)
	return nil
}

// createFolder writes everything into a temporary folder and renames it.
func (s *Store) createFolder(id string, files map[string][]byte) (err error) {
	tmp := tempPrefix + id
	if err := s.root.RemoveAll(tmp); err != nil {
		return err
	}
	if err := s.root.Mkdir(tmp, dirMode); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The first error is the one to report; Open removes the rest.
			_ = s.root.RemoveAll(tmp)
		}
	}()
	if err := s.root.Chmod(tmp, dirMode); err != nil {
		return err
	}
	if err := s.writeAll(files, func(name string) string { return path.Join(tmp, name) }); err != nil {
		return err
	}
	if err := s.syncDir(tmp); err != nil {
		return err
	}
	if err := s.root.Rename(tmp, id); err != nil {
		return err
	}
	return s.syncDir(".")
}

// Update rewrites incident.json and report.html of an incident and adds or
// replaces the given files. Each file is replaced whole; incident.json comes
// last, so it never speaks of a file that is not there.
func (s *Store) Update(inc *Incident, files map[string][]byte) error {
	if err := s.writable(inc, files); err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if fi, err := s.root.Lstat(inc.ID); err != nil || !fi.IsDir() {
		return fmt.Errorf("%w: %s", ErrNotFound, inc.ID)
	}
	all, err := s.contents(inc, files)
	if err != nil {
		return err
	}
	if err := s.replace(inc.ID, all); err != nil {
		return fmt.Errorf("incident %s: %s", inc.ID, explain(err))
	}
	s.remember(inc)
	return nil
}

func (s *Store) replace(id string, files map[string][]byte) error {
	temp := func(name string) string { return tempPrefix + id + "-" + name }
	names := slices.Sorted(maps.Keys(files))
	defer func() {
		for _, name := range names { // nothing is left after a success
			_ = s.root.Remove(temp(name))
		}
	}()
	for _, name := range names { // left by a write that could not be undone
		_ = s.root.Remove(temp(name))
	}
	if err := s.writeAll(files, temp); err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == JSONFile })
	names = append(names, JSONFile)
	for _, name := range names {
		if err := s.root.Rename(temp(name), path.Join(id, name)); err != nil {
			return err
		}
	}
	return s.syncDir(id)
}

// writable checks everything that can be wrong with a call before the disk is
// touched.
func (s *Store) writable(inc *Incident, files map[string][]byte) error {
	if s.lock == nil {
		return ErrReadOnly
	}
	if err := CheckID(inc.ID); err != nil {
		return err
	}
	for name := range files {
		if err := checkFile(name); err != nil {
			return err
		}
		if name == JSONFile || name == ReportFile {
			return fmt.Errorf("%w: %s is written by the store", ErrBadFile, name)
		}
	}
	return nil
}

// contents adds incident.json and report.html to the files of the caller.
func (s *Store) contents(inc *Incident, files map[string][]byte) (map[string][]byte, error) {
	data, err := Encode(inc)
	if err != nil {
		return nil, err
	}
	report, err := s.report(inc, files)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(files)
	if all == nil {
		all = map[string][]byte{}
	}
	all[JSONFile], all[ReportFile] = data, report
	return all, nil
}

// writeAll writes the files at once: each waits for the disk on its own, and
// a stuck proxy waits for all of them.
func (s *Store) writeAll(files map[string][]byte, where func(string) string) error {
	var wg sync.WaitGroup
	errs := make([]error, len(files))
	for i, name := range slices.Sorted(maps.Keys(files)) {
		wg.Go(func() { errs[i] = s.writeFile(where(name), files[name]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Store) writeFile(name string, data []byte) (err error) {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(fileMode); err != nil {
		return err
	}
	if n, err := f.Write(data); err != nil || n < len(data) {
		return errors.Join(err, shortWrite(n, len(data)))
	}
	return f.Sync()
}

func shortWrite(n, want int) error {
	if n < want {
		return io.ErrShortWrite
	}
	return nil
}

func (s *Store) syncDir(name string) (err error) {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}

// checkFile accepts a plain, visible file name of letters, digits, '.', '_', '-'.
func checkFile(name string) error {
	ok := name != "" && len(name) <= 100 && name[0] != '.' && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
	if !ok {
		return fmt.Errorf("%w: %.40q", ErrBadFile, name)
	}
	return nil
}
