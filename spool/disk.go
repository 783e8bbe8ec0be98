package spool

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// suffix ends the names of whole items: NUMBER-KEY.item. What does not end so
// was cut by a crash.
const suffix = ".item"

// load takes in what lies in the folder.
func (s *Spool) load() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, key, ok := parseName(e.Name())
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			if strings.HasSuffix(e.Name(), ".part") {
				_ = os.Remove(filepath.Join(s.dir, e.Name())) // the next start tries again
			}
			continue
		}
		s.next = max(s.next, number+1)
		s.items = append(s.items, item{number: number, file: e.Name(), key: key, size: info.Size()})
		s.bytes += info.Size()
	}
	slices.SortFunc(s.items, func(a, b item) int { return cmp.Compare(a.number, b.number) })
	for len(s.items) > 0 && (len(s.items) > s.limits.Items || s.bytes > s.limits.Bytes) {
		s.drop(s.items[0])
	}
	return nil
}

func parseName(name string) (number uint64, key string, ok bool) {
	head, rest, ok := strings.Cut(name, "-")
	key, whole := strings.CutSuffix(rest, suffix)
	number, err := strconv.ParseUint(head, 10, 63)
	return number, key, ok && whole && err == nil
}

// save moves an item to the disk, whole or not at all.
func (s *Spool) save(it *item) error {
	if it.key == "" || len(it.key) > 150 || strings.ContainsAny(it.key, "/\x00") {
		return fmt.Errorf("%q is no name", it.key)
	}
	name := fmt.Sprintf("%016d-%s%s", it.number, it.key, suffix)
	path := filepath.Join(s.dir, name)
	tmp := path + ".part"
	// The folder may have been made on a disk that was read-only at the start.
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := writeSynced(tmp, it.data); err != nil {
		return errors.Join(err, drop(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, drop(tmp))
	}
	it.file, it.data = name, nil
	return nil
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// drop removes a file that may not be there.
func drop(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Spool) read(it item) ([]byte, error) {
	if it.file == "" {
		return it.data, nil
	}
	data, err := os.ReadFile(filepath.Join(s.dir, it.file))
	if err == nil && int64(len(data)) != it.size {
		err = fmt.Errorf("%s: %d bytes, not %d", it.file, len(data), it.size)
	}
	return data, err
}

// remove forgets an item. A file that can't be removed is sent once more after
// a restart; receivers know items by their keys.
func (s *Spool) remove(it item) {
	i := slices.IndexFunc(s.items, func(o item) bool { return o.key == it.key })
	if i < 0 {
		return
	}
	it = s.items[i] // it may have been saved meanwhile
	if it.file != "" {
		_ = drop(filepath.Join(s.dir, it.file))
	} else {
		s.memory -= it.size
	}
	s.items = slices.Delete(s.items, i, i+1)
	s.bytes -= it.size
}
