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
	next   uint64
	counts Counts
}

// Counts says what became of the items since the start.
type Counts struct {
	Delivered, Failed, Dropped uint64 // Failed: attempts; Dropped: items given up
	Waiting                    int
}

// item is one waiting item. Its data is in memory only if the disk refused it.
type item struct {
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
	s := &Spool{dir: dir, limits: limits, wake: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		return s, fmt.Errorf("spool: %w", err)
	}
	return s, nil
}

// Put adds an item. An item whose key is waiting already is not added again. If
// the disk takes nothing, the item waits in memory, and the error says so.
func (s *Spool) Put(key string, data []byte) error {
	size := int64(len(data))
	if size > s.limits.Bytes {
		s.mu.Lock()
		s.counts.Dropped++
		s.mu.Unlock()
		return fmt.Errorf("spool: %s has %d bytes, over the limit of %d: dropped", key, size, s.limits.Bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		if it.key == key {
			return nil
		}
	}
	for len(s.items) > 0 && (len(s.items) >= s.limits.Items || s.bytes+size > s.limits.Bytes) {
		s.remove(s.items[0])
		s.counts.Dropped++
	}
	it := item{key: key, size: size}
	var err error
	if it.file, err = s.save(key, data); err != nil {
		it.file, it.data = "", data
		err = fmt.Errorf("spool: %s waits in memory only: %w", key, err)
	}
	s.items = append(s.items, it)
	s.bytes += size
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return err
}

// Counts returns the counts so far.
func (s *Spool) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Waiting = len(s.items)
	return c
}

// pause is the default of Limits.Pause.
func pause(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 10), 5*time.Minute)
}
