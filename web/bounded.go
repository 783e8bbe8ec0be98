package web

import (
	"slices"
	"strconv"
	"sync"
)

// bounded lets the first n values of a label pass and turns all others into
// "other": names come from configurations and memory that we do not control.
type bounded struct {
	mu   sync.Mutex
	most int
	seen map[string]struct{}
}

func newBounded(n int) *bounded { return &bounded{most: n, seen: map[string]struct{}{}} }

func (b *bounded) label(v string) string {
	v = printable(v, 128) // also for who reads the metrics in a terminal
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.seen[v]; ok {
		return v
	}
	if len(b.seen) >= b.most {
		return other
	}
	b.seen[v] = struct{}{}
	return v
}

func verdictLabel(v string) string {
	if slices.Contains(verdicts, v) {
		return v
	}
	return other
}

func workerLabel(index int) string {
	if index < 1 || index > maxWorkers {
		return other
	}
	return strconv.Itoa(index)
}
