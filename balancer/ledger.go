package balancer

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrFull is returned by Add once as many quarantines are in force as fit.
var ErrFull = fmt.Errorf("ledger is full: %d quarantines are in force", ledgerCapacity)

// Ledger is the file in which quarantines are written for the workers of one
// proxy. Its changes are whole or absent, also if the writer is killed:
// the bank that is not in force is filled, then the sequence moves to it.
// Goroutines and processes may share it; the caller closes it.
type Ledger struct {
	path string
	mu   sync.Mutex
	f    *os.File
}

// OpenLedger opens the ledger at the path and creates it if it is missing.
// A file that somebody but root or the caller may write, or a symbolic link,
// is refused. Contents that are no ledger are replaced by an empty one.
func OpenLedger(path string) (*Ledger, error) {
	l := &Ledger{path: path}
	if err := l.locked(func() error { return nil }); err != nil {
		return nil, err
	}
	return l, nil
}

// Path returns where the ledger lies.
func (l *Ledger) Path() string { return l.path }

// Close releases the file.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// Add puts a quarantine into force and returns it with its id and start. One
// with the same id is replaced; those that ended some time ago are dropped.
func (l *Ledger) Add(e Entry, now time.Time) (Entry, error) {
	if e.ID == "" {
		var id [8]byte
		_, _ = rand.Read(id[:])
		e.ID = "q-" + hex.EncodeToString(id[:])
	}
	if e.Since.IsZero() {
		e.Since = now
	}
	if err := e.check(); err != nil {
		return Entry{}, err
	}
	err := l.change(now, func(entries []Entry) ([]Entry, error) {
		entries = without(entries, func(old Entry) bool { return old.ID == e.ID })
		if len(entries) >= ledgerCapacity {
			return nil, ErrFull
		}
		return append(entries, e), nil
	})
	return e, err
}

// Lift ends the quarantine with the id, and says whether there was one.
func (l *Ledger) Lift(id string, now time.Time) (bool, error) {
	found := false
	err := l.change(now, func(entries []Entry) ([]Entry, error) {
		return without(entries, func(e Entry) bool {
			found = found || e.ID == id
			return e.ID == id
		}), nil
	})
	return found, err
}

// grace is for how long an entry stays in the file after its end: all workers
// but the first take a version back a little later.
const grace = 10 * time.Second

func over(e Entry, now time.Time) bool { return !e.Until.Add(grace).After(now) }

// Prune drops the quarantines that ended more than ten seconds ago; so does
// every change.
func (l *Ledger) Prune(now time.Time) error {
	return l.change(now, func(entries []Entry) ([]Entry, error) { return entries, nil })
}

// List returns the quarantines in force, oldest first.
func (l *Ledger) List(now time.Time) ([]Entry, error) {
	var entries []Entry
	err := l.locked(func() (err error) {
		entries, _, err = read(l.f)
		return err
	})
	return without(entries, func(e Entry) bool { return !e.Until.After(now) }), err
}

func (l *Ledger) change(now time.Time, edit func([]Entry) ([]Entry, error)) error {
	return l.locked(func() error {
		old, sequence, err := read(l.f)
		if err != nil {
			return err
		}
		entries := without(old, func(e Entry) bool { return over(e, now) })
		if entries, err = edit(entries); err != nil {
			return err
		}
		if sameEntries(old, entries) {
			return nil
		}
		return write(l.f, entries, sequence+1, now)
	})
}

// locked runs do with the file that lies at the path now, alone among all
// writers.
func (l *Ledger) locked(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reopen(); err != nil {
		return err
	}
	if err := flock(l.f); err != nil {
		return fmt.Errorf("ledger %s: lock: %v", l.path, err)
	}
	defer func() { _ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN) }()
	if err := repair(l.f); err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	}
	if err := do(); err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	}
	return nil
}

// flock waits at most two seconds for another writer; a change takes far less
// than a millisecond.
func flock(f *os.File) error {
	for range 200 {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("another process holds it")
}

// repair replaces what is no ledger by an empty one. Workers that have read a
// good one before keep it until they see the new one.
func repair(f *os.File) error {
	if _, _, err := read(f); err == nil || !errors.Is(err, ErrLedger) {
		return err
	}
	if err := f.Truncate(ledgerSize); err != nil {
		return err
	}
	// A worker looks only at the sequence: it must not be one it has seen.
	var b [4]byte
	_, _ = rand.Read(b[:])
	sequence := binary.LittleEndian.Uint32(b[:])
	if err := write(f, nil, sequence, time.Unix(0, 0)); err != nil {
		return err
	}
	return write(f, nil, sequence+1, time.Unix(0, 0))
}

func read(f io.ReaderAt) ([]Entry, uint32, error) {
	h := make([]byte, ledgerHeader)
	if err := readFull(f, h, 0); err != nil {
		return nil, 0, err
	}
	sequence, err := checkHeader(h)
	if err != nil {
		return nil, 0, err
	}
	b := make([]byte, bankSize)
	if err := readFull(f, b, bankAt(sequence)); err != nil {
		return nil, 0, err
	}
	entries, err := decodeBank(b)
	return entries, sequence, err
}

func readFull(f io.ReaderAt, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) && n < len(b) {
		return fmt.Errorf("cut at %d bytes: %w", at+int64(n), ErrLedger)
	}
	if n == len(b) {
		return nil
	}
	return err
}

// write fills the bank that the new sequence points to, then moves to it.
func write(f io.WriterAt, entries []Entry, sequence uint32, now time.Time) error {
	if _, err := f.WriteAt(encodeBank(entries, now), bankAt(sequence)); err != nil {
		return err
	}
	_, err := f.WriteAt(newHeader(sequence), 0)
	return err
}

func without(entries []Entry, drop func(Entry) bool) []Entry {
	kept := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if !drop(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

func sameEntries(a, b []Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
