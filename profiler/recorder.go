package profiler

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// Worker names one watched thread. A respawned worker is another one.
type Worker struct {
	Proxy    string
	PID, TID int
}

// RecorderOptions set up a Recorder; zero fields take the defaults.
type RecorderOptions struct {
	Keep   time.Duration // how far back it remembers; default 30 s
	Budget int           // bytes of memory, about; default 16 MiB
	Rate   int           // stacks a second of each worker that it asks for; default 5
	Total  int           // stacks a second of all workers together; default: no limit
}

// Recorder is the flight recorder: it keeps the sampled stacks of the last
// seconds of every watched worker, within a budget of memory. When the budget
// is spent it degrades in the steps of its list, and says so in what it gives
// out. Time is that of the samples (CLOCK_MONOTONIC). Goroutines may share it.
type Recorder struct {
	keep   time.Duration
	budget int
	rate   int
	total  int

	mu      sync.Mutex
	seed    maphash.Seed
	frames  map[frameKey]*heldFrame
	stacks  map[uint64][]*heldStack
	workers map[Worker]*track
	used    int
	newest  time.Duration
	swept   int64 // the second of the last expire
	step    step
	calm    time.Duration // since when half of the budget has been enough
}

// track is what is kept of one worker, oldest first.
type track struct {
	records []record
	lost    []loss
	next    time.Duration // when the next stack is wanted
	carried time.Duration // weight of the samples since the last record
	odd     bool          // every other one is dropped when records are thinned
}

// record is one sample.
type record struct {
	when   time.Duration
	weight time.Duration
	stack  *heldStack
	labels Labels
	values []frameValues
}

// frameValues are the Lua values of frame number at.
type frameValues struct {
	at   int
	list []stack.Value
}

// loss is what could not be kept of one second.
type loss struct {
	second int64
	reason string
	n      uint64
}

// heldStack is one distinct stack, shared by its records.
type heldStack struct {
	hash      uint64
	frames    []*heldFrame
	truncated string
	refs      int
}

// heldFrame is one distinct frame, shared by its stacks.
type heldFrame struct {
	key   frameKey
	frame stack.Frame
	refs  int
}

// What things take in memory, about, with what points to them.
const (
	recordCost = 240
	stackCost  = 160
	slotCost   = 8
	frameCost  = 480
	valueCost  = 96
	lossCost   = 40
)

// NewRecorder returns an empty recorder.
func NewRecorder(o RecorderOptions) *Recorder {
	if o.Keep <= 0 {
		o.Keep = 30 * time.Second
	}
	if o.Budget <= 0 {
		o.Budget = 16 << 20
	}
	if o.Rate <= 0 {
		o.Rate = 5
	}
	return &Recorder{
		keep: o.Keep, budget: o.Budget, rate: o.Rate, total: o.Total, seed: maphash.MakeSeed(),
		frames: map[frameKey]*heldFrame{}, stacks: map[uint64][]*heldStack{}, workers: map[Worker]*track{},
	}
}

// Wants says whether a stack of the worker is due, so that the caller can save
// the work of understanding the sample. If not, the sample's weight is carried
// over to the next stack that is recorded, so that shares stay right.
func (r *Recorder) Wants(w Worker, when, weight time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.track(w)
	if when >= t.next {
		return true
	}
	r.skip(t, when, weight)
	return false
}

// Skip counts a sample whose stack was not copied: its weight is carried over
// to the next stack that is recorded, so that shares and CPU time stay right.
func (r *Recorder) Skip(w Worker, when, weight time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skip(r.track(w), when, weight)
}

func (r *Recorder) skip(t *track, when, weight time.Duration) {
	t.carried += weight
	r.lose(t, when, "thinned", 1)
}

// Add records one sample, whether it was wanted or not.
func (r *Recorder) Add(w Worker, when time.Duration, res Result, weight time.Duration, labels Labels) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if labels.State == "" {
		labels.State = res.State
	}
	t := r.track(w)
	t.next = when + r.interval()
	rec := record{when: when, weight: weight + t.carried, labels: labels}
	t.carried = 0
	if r.step < dropValues {
		rec.values = valuesOf(res.Stack)
	}
	rec.stack = r.hold(res.Stack)
	t.insert(rec)
	r.used += rec.cost()
	r.newest = max(r.newest, when)
	r.expire()
	r.degrade()
	r.recover()
}

// Lost counts samples of a worker that were taken and could not be recorded.
func (r *Recorder) Lost(w Worker, when time.Duration, reason string, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose(r.track(w), when, reason, n)
}

// Forget drops all of one worker, once its incident has been written.
func (r *Recorder) Forget(w Worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.workers[w]; t != nil {
		r.drop(t, len(t.records))
		r.used -= len(t.lost) * lossCost
		delete(r.workers, w)
	}
}

// Used returns the bytes in use, about, and the budget.
func (r *Recorder) Used() (used, budget int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, r.budget
}

func (r *Recorder) track(w Worker) *track {
	t := r.workers[w]
	if t == nil {
		t = &track{}
		r.workers[w] = t
	}
	return t
}

func (r *Recorder) lose(t *track, when time.Duration, reason string, n uint64) {
	second := int64(when / time.Second)
	for i := len(t.lost) - 1; i >= 0 && t.lost[i].second == second; i-- {
		if t.lost[i].reason == reason {
			t.lost[i].n += n
			return
		}
	}
	t.lost = append(t.lost, loss{second: second, reason: reason, n: n})
	r.used += lossCost
}

// insert keeps the records sorted: samples of two CPUs may come out of order.
func (t *track) insert(rec record) {
	i := len(t.records)
	for i > 0 && t.records[i-1].when > rec.when {
		i--
	}
	t.records = slices.Insert(t.records, i, rec)
}

// expire forgets what is older than the recorder keeps, once a second: the
// rest of the records moves each time.
func (r *Recorder) expire() {
	if second := int64(r.newest / time.Second); second != r.swept {
		r.swept = second
	} else {
		return
	}
	oldest := r.newest - r.keep
	for w, t := range r.workers {
		n := 0
		for n < len(t.records) && t.records[n].when < oldest {
			n++
		}
		r.drop(t, n)
		r.dropLosses(t, int64(oldest/time.Second))
		if len(t.records) == 0 && len(t.lost) == 0 && t.next < oldest {
			delete(r.workers, w)
		}
	}
}

func (r *Recorder) dropLosses(t *track, oldest int64) {
	n := 0
	for n < len(t.lost) && t.lost[n].second < oldest {
		n++
	}
	r.used -= n * lossCost
	t.lost = slices.Delete(t.lost, 0, n)
}

// drop forgets the first n records of a worker.
func (r *Recorder) drop(t *track, n int) {
	for i := range t.records[:n] {
		r.used -= t.records[i].cost()
		r.release(t.records[i].stack)
	}
	t.records = slices.Delete(t.records, 0, n)
}

func (rec *record) cost() int { return recordCost + valuesCost(rec.values) }

func valuesCost(values []frameValues) int {
	n := 0
	for _, v := range values {
		for i := range v.list {
			n += valueCost + len(v.list[i].Name) + len(v.list[i].Text)
		}
	}
	return n
}

func valuesOf(s stack.Stack) []frameValues {
	var out []frameValues
	for i := range s.Frames {
		if len(s.Frames[i].Values) > 0 {
			out = append(out, frameValues{at: i, list: s.Frames[i].Values})
		}
	}
	return out
}
