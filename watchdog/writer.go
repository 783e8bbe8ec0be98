package watchdog

import (
	"slices"
	"sync"
	"sync/atomic"
)

// writer does beside the loop, one after the other and in the order in which
// it is told to, what waits for a disk. A slow disk must not keep the loop from
// its workers. The zero value is ready; close it.
type writer struct {
	wake func() // tells the loop that something is done; nil: it looks by itself

	mu      sync.Mutex
	queue   []task
	then    []func()
	running bool
	idle    sync.Cond
	news    atomic.Bool
}

// task is one thing to write. What do returns is run by the loop afterwards.
type task struct {
	whole string // id of the incident whose state do writes in the whole; empty: it writes something else
	do    func() (then func())
}

// writerQueue bounds the tasks that wait. States of incidents do not count: of
// each there is one, and there are no more incidents than evidence was taken.
const writerQueue = 64

// put hands over a task. It says no if too many wait: then the caller comes
// again. A state that still waits to be written gives way to a newer one.
func (w *writer) put(t task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.whole != "" {
		if i := slices.IndexFunc(w.queue, func(q task) bool { return q.whole == t.whole }); i >= 0 {
			w.queue[i] = t
			return true
		}
	} else if len(w.queue) >= writerQueue {
		return false
	}
	w.queue = append(w.queue, t)
	if !w.running {
		w.running = true
		go w.run()
	}
	return true
}

// run does what waits, until nothing does.
func (w *writer) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 {
		t := w.queue[0]
		w.queue = slices.Delete(w.queue, 0, 1)
		w.mu.Unlock()
		then := t.do()
		w.mu.Lock()
		if then == nil {
			continue
		}
		w.then = append(w.then, then)
		w.news.Store(true)
		if w.wake != nil {
			w.wake()
		}
	}
	w.running = false
	w.signal().Broadcast()
}

// signal returns the condition that the writer is idle; the lock is held.
func (w *writer) signal() *sync.Cond {
	w.idle.L = &w.mu
	return &w.idle
}

// finish runs in the loop what is left of the tasks that were done.
func (w *writer) finish() {
	if !w.news.Swap(false) {
		return
	}
	w.mu.Lock()
	list := w.then
	w.then = nil
	w.mu.Unlock()
	for _, then := range list {
		then()
	}
}

// close waits until everything is written.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.running {
		w.signal().Wait()
	}
}
