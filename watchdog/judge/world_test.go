package judge

import (
	"testing"
	"time"
)

const (
	msec   = time.Millisecond
	steady = time.Second / 49
)

func limits() Limits { return limitsAfter(0) }

// limitsAfter are those of a proxy whose handlers were seen to end after d.
func limitsAfter(d time.Duration) Limits {
	return Limits{Suspect: 100 * msec, Runaway: 300 * msec, Blocked: time.Second, Window: 2 * time.Second,
		Young: 10 * time.Second, Turn: 3 * time.Second, Usual: d}
}

// world makes observations of one worker, step by step.
type world struct {
	o     Observation
	usual time.Duration
	state State
	last  Decision
	seen  map[Verdict]bool
	ended time.Duration
}

func newWorld() *world {
	w := &world{seen: map[Verdict]bool{}}
	w.o.ProgressOK = true
	return w
}

// observe judges the current observation.
func (w *world) observe() {
	w.state, w.last = Judge(w.state, w.o, limitsAfter(w.usual))
	w.seen[w.last.Verdict] = true
	w.ended = max(w.ended, w.last.Ended)
}

// run lets the worker compute for d, sampled every period, on a CPU of which
// it gets the given share. change is called before each sample.
func (w *world) run(d, period time.Duration, share float64, change func(i int)) {
	for i := 0; time.Duration(i)*period < d; i++ {
		w.o.CPUTime += period
		w.o.Now += time.Duration(float64(period) / share)
		w.o.Weight, w.o.Asleep, w.o.Waiting = period, false, ""
		if change != nil {
			change(i)
		}
		w.observe()
	}
}

// look lets the worker be looked at every 200 ms for d of wall time.
func (w *world) look(d time.Duration, change func(i int)) {
	for i := 0; time.Duration(i)*200*msec < d; i++ {
		w.o.Now += 200 * msec
		w.o.Weight = 0
		if change != nil {
			change(i)
		}
		w.observe()
	}
}

// story is what happens to a worker, and what the judge must say of it.
type story struct {
	name  string
	happ  func(w *world)
	want  Verdict
	never []Verdict
}

func judgeAll(t *testing.T, stories []story) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld()
			w.observe()
			s.happ(w)
			if w.last.Verdict != s.want {
				t.Errorf("verdict %s (%s), want %s", w.last.Verdict, w.last.Reason, s.want)
			}
			for _, v := range s.never {
				if w.seen[v] {
					t.Errorf("verdict %s on the way", v)
				}
			}
		})
	}
}
