package drill

import (
	"context"
	"slices"
	"sync"
	"time"
)

// change is a worker that appeared or disappeared.
type change struct {
	at      time.Time
	pid     int
	gone    bool
	current int // workers afterwards
}

// workerWatch follows the workers of a proxy from the outside, without asking
// the agent.
type workerWatch struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	now     []int
	changes []change
}

const workerPoll = 20 * time.Millisecond

func (l *lab) watchWorkers(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w := &workerWatch{cancel: cancel, now: l.workers()}
	l.watch = w
	master := l.master
	l.spawn(&w.wg, func() {
		tick := time.NewTicker(workerPoll)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			w.look(func() []int { return l.workersOf(master) })
			if n%10 == 0 {
				l.brood.note()
			}
		}
	})
}

// look takes in the workers that there are. What it sees has happened by the
// end of the reading: with the time before it, a worker that was evicted in
// between would seem to have gone before its eviction.
func (w *workerWatch) look(read func() []int) {
	now := read()
	w.update(time.Now(), now)
}

func (w *workerWatch) update(at time.Time, now []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pid := range w.now {
		if !slices.Contains(now, pid) {
			w.changes = append(w.changes, change{at: at, pid: pid, gone: true, current: len(now)})
		}
	}
	for _, pid := range now {
		if !slices.Contains(w.now, pid) {
			w.changes = append(w.changes, change{at: at, pid: pid, current: len(now)})
		}
	}
	w.now = now
}

func (w *workerWatch) stop() {
	w.cancel()
	w.wg.Wait()
}

// since returns what changed from an instant on.
func (w *workerWatch) since(t time.Time) []change {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []change
	for _, c := range w.changes {
		if !c.at.Before(t) {
			out = append(out, c)
		}
	}
	return out
}

// replaced says since when all want workers are in place, after at least n had
// gone. What went before the first eviction, if there was one, was another's
// doing, such as a reload's.
func replaced(changes []change, evicted time.Time, n, want int) (time.Time, bool) {
	gone := 0
	var at time.Time
	for _, c := range changes {
		if c.at.Before(evicted) {
			continue
		}
		if c.gone {
			gone++
		}
		switch {
		case c.current < want:
			at = time.Time{}
		case gone >= n && at.IsZero():
			at = c.at
		}
	}
	return at, !at.IsZero()
}
