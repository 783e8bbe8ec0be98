package incident

import (
	"fmt"
	"slices"
	"time"
)

// Retain removes the oldest incidents until both bounds hold, and returns the
// ids of those removed. Incidents that are still open stay, unless they began
// over a day ago: an agent that died left them.
func (s *Store) Retain(now time.Time) ([]string, error) {
	if s.lock == nil {
		return nil, ErrReadOnly
	}
	s.write.Lock()
	defer s.write.Unlock()
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, id := range s.surplus(ids, now) {
		if err := s.remove(id); err != nil {
			return removed, fmt.Errorf("incident %s: %s", id, explain(err))
		}
		removed = append(removed, id)
	}
	return removed, nil
}

// surplus chooses what to remove, oldest first. ids are newest first. Those
// from the future go before all others: the clock was set back since, and what
// comes after them must not be taken for old.
func (s *Store) surplus(ids []string, now time.Time) []string {
	ids = futureLast(ids, now)
	count := len(ids)
	var bytes int64
	sizes := make([]int64, len(ids))
	if s.keep.Bytes > 0 {
		for i, id := range ids {
			sizes[i] = s.bytes(id)
			bytes += sizes[i]
		}
	}
	var out []string
	for i := len(ids) - 1; i >= 0; i-- {
		if !s.over(count, bytes) {
			break
		}
		if s.stillOpen(ids[i], now) {
			continue
		}
		out = append(out, ids[i])
		count--
		bytes -= sizes[i]
	}
	return out
}

func (s *Store) over(count int, bytes int64) bool {
	return s.keep.Count > 0 && count > s.keep.Count || s.keep.Bytes > 0 && bytes > s.keep.Bytes
}

func (s *Store) stillOpen(id string, now time.Time) bool {
	sum, err := s.summary(id)
	return err == nil && sum.Ended == nil && now.Sub(sum.Began).Abs() < maxOpen
}

// futureLast moves the ids of times after now to the end, where the oldest are.
func futureLast(ids []string, now time.Time) []string {
	first := slices.IndexFunc(ids, func(id string) bool { return id < Until(now) })
	if first <= 0 {
		return ids
	}
	return append(slices.Clone(ids[first:]), ids[:first]...)
}

// bytes returns the size of a folder. The writer alone changes folders, so it
// counts each only once.
func (s *Store) bytes(id string) int64 {
	s.mu.Lock()
	n, ok := s.sizes[id]
	s.mu.Unlock()
	if ok {
		return n
	}
	files, err := s.Files(id)
	if err != nil {
		return 0
	}
	for _, f := range files {
		n += f.Bytes
	}
	s.mu.Lock()
	s.sizes[id] = n
	s.mu.Unlock()
	return n
}

// remove renames the folder first, so that a crash leaves a leftover and not
// half an incident.
func (s *Store) remove(id string) error {
	tmp := tempPrefix + "gone-" + id
	if err := s.root.Rename(id, tmp); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.cache, id)
	delete(s.sizes, id)
	s.mu.Unlock()
	return s.root.RemoveAll(tmp)
}
