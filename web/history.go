package web

import (
	"fmt"
	"sync"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

const (
	historyEvery  = 2 * time.Second
	historyPoints = 60 // two minutes
)

// point is one moment of a worker.
type point struct{ CPU, StallMS float64 }

// history keeps the last points of every worker that is there now.
type history struct {
	mu   sync.Mutex
	rows map[string][]point
}

func newHistory() *history { return &history{rows: map[string][]point{}} }

func historyKey(w api.WorkerStatus) string { return fmt.Sprintf("%s/%d", w.Proxy, w.Index) }

// add appends one point per worker and forgets workers that are gone.
func (h *history) add(workers []api.WorkerStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := make(map[string][]point, len(workers))
	for _, w := range workers {
		k := historyKey(w)
		p := append(h.rows[k], point{w.CPUShare, w.StallMS})
		if n := len(p) - historyPoints; n > 0 {
			p = append([]point(nil), p[n:]...)
		}
		rows[k] = p
	}
	h.rows = rows
}

// of returns a copy of the points of a worker, oldest first.
func (h *history) of(w api.WorkerStatus) []point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]point(nil), h.rows[historyKey(w)]...)
}
