// Package spool keeps what must reach another host until it has: a bounded
// folder of small files, delivered oldest first, again and again while the
// receiver is away.
package spool

import (
	"fmt"
	"sync"
	"time"
)

// Limits bound what waits. Over them, the oldest is dropped.
type Limits struct {
	Items int
	Bytes int64 // of all items; an item that is larger alone is refused
	// Memory is how much of Bytes may be in memory while the disk takes
	// nothing; 0: all of it.
	Memory int64
	// Pause is how long to wait after so many failures in a row; nil: 1 s,
	// doubled each time, 5 minutes at most.
	Pause func(failures int) time.Duration
}

// Spool is one queue to one receiver. Any goroutine may Put; one may Run.
type Spool struct {
	dir    string
	limits Limits
	wake   chan struct{}

	mu     sync.Mutex
	items  []item // oldest first
	bytes  int64
	memory int64 // bytes of those that are not on disk
	next   uint64
	counts Counts
}

// Counts says what became of the items since the start.
type Counts struct {
	Queued, Delivered, Failed, Dropped uint64 // Failed: attempts; Dropped: items given up

	Waiting int   // items
	Unsaved int   // of those, in memory only
	Bytes   int64 // of all that wait
}

// item is one waiting item. Its data is in memory only if the disk refused it.
type item struct {
	number  uint64 // its place in the queue
	file    string // below dir; empty: in memory
	key     string
	size    int64
	data    []byte
	replies int
}

// Open opens the folder dir, which it makes if need be, with what an earlier
// process left in it. With an error too it returns a Spool that can be used:
// without a folder, all waits in memory.
func Open(dir string, limits Limits) (*Spool, error) {
	if limits.Pause == nil {
		limits.Pause = pause
	}
	if limits.Memory == 0 {
		limits.Memory = limits.Bytes
	}
	s := &Spool{dir: dir, limits: limits, wake: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		return s, fmt.Errorf("spool: %w", err)
	}
	return s, nil
}

// Put adds an item. An item whose key is waiting already is not added again. If
// the disk takes nothing, the item waits in memory until it does, and the error
// says so.
func (s *Spool) Put(key string, data []byte) error {
	size := int64(len(data))
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > s.limits.Bytes {
		s.counts.Dropped++
		return fmt.Errorf("spool: %s has %d bytes, over the limit of %d: dropped", key, size, s.limits.Bytes)
	}
	for _, it := range s.items {
		if it.key == key {
			return nil
		}
	}
	s.counts.Queued++
	for len(s.items) > 0 && (len(s.items) >= s.limits.Items || s.bytes+size > s.limits.Bytes) {
		s.drop(s.items[0])
	}
	s.saveWaiting()
	it := item{number: s.next, key: key, size: size, data: data}
	s.next++
	err := s.save(&it)
	s.items = append(s.items, it)
	s.bytes += size
	if err != nil {
		err = fmt.Errorf("spool: %s waits in memory only: %w", key, err)
		s.memory += size
		s.boundMemory()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return err
}

// Refuse counts an item that its owner could not even Put.
func (s *Spool) Refuse() {
	s.mu.Lock()
	s.counts.Dropped++
	s.mu.Unlock()
}

// drop gives an item up. The caller holds the lock, as that of all below.
func (s *Spool) drop(it item) {
	s.remove(it)
	s.counts.Dropped++
}

// saveWaiting moves items from memory to a disk that takes them again.
func (s *Spool) saveWaiting() {
	for i := range s.items {
		it := &s.items[i]
		if it.file != "" {
			continue
		}
		if s.save(it) != nil {
			return
		}
		s.memory -= it.size
	}
}

// boundMemory drops the oldest items that are in memory only.
func (s *Spool) boundMemory() {
	for i := 0; s.memory > s.limits.Memory && i < len(s.items); {
		if s.items[i].file != "" {
			i++
			continue
		}
		s.drop(s.items[i])
	}
}

// Counts returns the counts so far.
func (s *Spool) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Waiting, c.Bytes = len(s.items), s.bytes
	for _, it := range s.items {
		if it.file == "" {
			c.Unsaved++
		}
	}
	return c
}

// pause is the default of Limits.Pause.
func pause(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 10), 5*time.Minute)
}
