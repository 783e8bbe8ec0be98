package judge

import (
	"testing"
	"time"
)

func TestSaturated(t *testing.T) {
	judgeAll(t, []story{
		{"saturated on a crowded host", func(w *world) {
			for i := range 200 {
				w.run(steady, steady, 0.1, func(int) { w.o.Request, w.o.Progress = uint64(i+1), uint64(i); w.o.Activity = uint64(i + 1) })
				w.o.Weight, w.o.RunDelay = 0, time.Duration(i)*180*msec
				w.observe()
				w.o.RunDelay = 0
			}
		}, Saturated, []Verdict{Suspect, Runaway}},
		{"one handler of 250 ms after the other", func(w *world) { longHandlers(w, 0) }, Saturated, []Verdict{Runaway, Spinning}},
		{"the same with a rest after each", func(w *world) { longHandlers(w, 1) }, Healthy, []Verdict{Runaway, Saturated}},
		{"sends one big answer", func(w *world) {
			w.run(6*time.Second, steady, 1, func(i int) {
				w.o.Progress++
				w.o.Request, w.o.Motion, w.o.Activity, w.o.Counting = 7, uint64(i), uint64(i), true
				w.o.EventWaits += 100
			})
		}, Saturated, []Verdict{Spinning, Runaway}},
	})
}

// Of a busy worker only some stacks are looked at. That the other samples name
// no request raises no doubt of what it does, which to settle would cost it something.
func TestSamplesThatNobodyLookedAtAreNoSamplesWithoutRequests(t *testing.T) {
	for _, x := range []struct {
		name   string
		unseen bool
	}{{"looked at a few", true}, {"looked at all, and few show a request", false}} {
		w, counted := newWorld(), false
		w.run(6*time.Second, steady, 1, func(i int) {
			w.o.Progress++
			w.o.Activity, w.o.Request, w.o.Unseen = uint64(1+i), uint64(1+i), false
			if i%5 != 0 {
				w.o.Activity, w.o.Request, w.o.Unseen = 0, 0, x.unseen
			}
			counted = counted || w.last.Count
		})
		if counted == x.unseen || w.last.Verdict != Saturated {
			t.Errorf("%s: %s, in doubt %v", x.name, w.last.Verdict, counted)
		}
	}
}

func TestWishes(t *testing.T) {
	w := newWorld()
	w.observe()
	if w.last.Burst || w.last.Close || w.last.Count {
		t.Errorf("a healthy worker is watched closely: %+v", w.last)
	}
	w.run(120*msec, steady, 1, nil)
	if w.last.Burst || !w.last.Close {
		t.Errorf("a suspect of 120 ms is not watched closely, or disturbed: %+v", w.last)
	}
	w.run(80*msec, steady, 1, nil)
	if !w.last.Burst || !w.last.Close {
		t.Errorf("a suspect of 200 ms is not watched closely: %+v", w.last)
	}
}

// longHandlers serves one request of 250 ms after the other in turns of their
// own, with so many sleeps after each.
func longHandlers(w *world, sleeps uint64) {
	for i := range 24 {
		w.o.Progress++
		w.o.Voluntary += sleeps
		w.run(250*msec, steady, 1, func(int) { w.o.Request, w.o.Activity = uint64(i+1), 7 })
	}
	w.run(msec, msec, 1, func(int) { w.o.Progress++ })
}
