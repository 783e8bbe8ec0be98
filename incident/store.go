package incident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Names of the files that the Store itself writes into each folder.
const (
	JSONFile   = "incident.json"
	ReportFile = "report.html"
)

// Names of the files that a caller adds. The report shows the two pictures.
const (
	ProfileFile  = "profile.pb.gz"
	BaselineFile = "baseline.pb.gz" // the worker itself, before
	SiblingsFile = "siblings.pb.gz" // the other workers of its proxy, before and meanwhile
	FlameFile    = "flamegraph.svg"
	DiffFile     = "diff.svg"
)

const (
	tempPrefix = ".tmp-"
	lockFile   = ".lock"
	dirMode    = 0o750
	fileMode   = 0o640
)

// Retention bounds what is kept. Zero means no bound.
type Retention struct {
	Count int
	Bytes int64
}

// Store is a directory of incident folders. Its methods may be called by many
// goroutines. Close it.
type Store struct {
	root *os.Root
	dir  string
	keep Retention
	lock *os.File // nil: for reading only

	write sync.Mutex // one writer at a time
	mu    sync.Mutex // guards what follows
	cache map[string]cached
	sizes map[string]int64 // bytes of folders
	known known
}

// Open opens dir for writing, makes it (mode 0750) if it is not there, and
// removes what a crashed writer left behind. Only one process may have it open
// for writing; another gets ErrLocked.
func Open(dir string, keep Retention) (*Store, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("incidents folder: %s", err)
	}
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	s.keep = keep
	if err := s.takeLock(); err != nil {
		_ = s.root.Close()
		return nil, err
	}
	if err := s.clean(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("leftovers in %s: %s", dir, err)
	}
	return s, nil
}

// OpenReadOnly opens dir for List, Load, File and Export only, also while an
// agent writes to it.
func OpenReadOnly(dir string) (*Store, error) { return open(dir) }

func open(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("incidents folder: %s", err)
	}
	return &Store{root: root, dir: dir, cache: map[string]cached{}, sizes: map[string]int64{}}, nil
}

// Close releases the folder.
func (s *Store) Close() error {
	err := s.root.Close()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// Dir returns the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Path returns the folder of an incident, for messages.
func (s *Store) Path(id string) string { return s.dir + "/" + id }

func (s *Store) takeLock() error {
	f, err := s.root.OpenFile(lockFile, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW, fileMode)
	if err != nil {
		return fmt.Errorf("lock of the incidents: %s", explain(err))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w: %s is locked", ErrLocked, s.dir)
		}
		return fmt.Errorf("lock of the incidents: %s", err)
	}
	s.lock = f
	return nil
}

// clean removes temporary files and folders. The lock is held, so no living
// writer owns one.
func (s *Store) clean() error {
	entries, err := s.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := s.root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) entries() ([]fs.DirEntry, error) {
	d, err := s.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return d.ReadDir(-1)
}

// explain gives the remedy for the errors of a disk that operators meet.
func explain(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Sprintf("%s: free some space or lower retention.bytes", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("%s: remount it writable or set state_dir elsewhere", err)
	case errors.Is(err, syscall.EFBIG):
		return fmt.Sprintf("%s: raise the file size limit of the agent", err)
	}
	return err.Error()
}

// maxOpen is how long an incident without an end is taken for open. A crashed
// agent leaves such a one behind, and it must not be kept for ever.
const maxOpen = 24 * time.Hour
