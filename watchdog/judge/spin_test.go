package judge

import (
	"testing"
	"time"
)

func TestSpinning(t *testing.T) {
	judgeAll(t, []story{
		{"retries one request for ever", func(w *world) {
			w.run(6*time.Second, steady, 1, func(i int) {
				w.o.Progress++
				w.o.Request, w.o.Motion, w.o.Activity, w.o.Counting = 7, uint64(i%2), uint64(i), true
				w.o.EventWaits += 100
			})
		}, Spinning, []Verdict{Runaway}},
		{"a descriptor that is always ready", func(w *world) { spin(w, 6*time.Second, 20_000, 1, 0) }, Spinning, []Verdict{Runaway, Suspect}},
		{"the same on a crowded host", func(w *world) { spinAt(w, time.Second, 20_000, 1, 0, 0.08) }, Spinning, []Verdict{Runaway, Suspect}},
		{"the same, and others are served meanwhile", func(w *world) { spin(w, 6*time.Second, 20_000, 1.4, 9) }, Spinning, []Verdict{Runaway}},
		{"a failing call in each turn", func(w *world) { spin(w, 6*time.Second, 10_000, 2, 0) }, Spinning, []Verdict{Runaway}},
		{"busy with streams that are no requests", func(w *world) { spin(w, 90*time.Second, 10_000, 3, 0) }, Saturated, []Verdict{Spinning}},
		{"busy with requests of few calls", func(w *world) { spin(w, 6*time.Second, 10_000, 2, 1) }, Saturated, []Verdict{Spinning}},
		{"busy with long work between its turns", func(w *world) { spin(w, 6*time.Second, 300, 1, 0) }, Saturated, []Verdict{Spinning}},
		{"tries again and again, with short sleeps", func(w *world) { retries(w, false) }, Spinning, []Verdict{Runaway, Saturated}},
		{"one long answer, with short sleeps", func(w *world) { retries(w, true) }, Healthy, []Verdict{Spinning, Saturated}},
	})
}

// spin turns the loop so many times a second, with so many system calls in
// each turn. Every so many-th sample shows another request, 0: none does.
func spin(w *world, d time.Duration, turns, calls float64, requests int) {
	spinAt(w, d, turns, calls, requests, 1)
}

func spinAt(w *world, d time.Duration, turns, calls float64, requests int, share float64) {
	var made float64 // fractions of calls count, too
	w.run(d, steady, share, func(i int) {
		w.o.Progress++
		w.o.Activity, w.o.Request = uint64(1+i), 0
		if requests > 0 && i%requests == 0 {
			w.o.Request = uint64(100 + i)
		}
		w.o.Counting = w.last.Count
		w.o.RunDelay = w.o.Now - w.o.CPUTime
		look := w.o
		look.Weight, look.Request, look.Activity = 0, 0, 0
		w.state, w.last = Judge(w.state, look, limits())
		n := turns * steady.Seconds()
		made += n * calls
		w.o.EventWaits += uint64(n)
		w.o.Syscalls = uint64(made)
	})
}

// retries has one request at work for nine seconds of the wall at a seventh of a
// CPU. Only some samples come with a stack unless the judge asks for them.
func retries(w *world, moves bool) {
	w.run(9*time.Second*15/100, steady, 0.15, func(i int) {
		w.o.Progress++
		w.o.Voluntary += 30
		w.o.Request, w.o.Activity, w.o.Motion = 0, 0, 0
		if w.last.Close || i%3 == 0 {
			w.o.Request, w.o.Activity = 7, uint64(1+i%3)
			if moves {
				w.o.Motion = uint64(i)
			}
		}
		w.o.Counting = w.last.Count
		w.o.EventWaits += 100
		w.o.Syscalls += 600
	})
}

func TestWorkIsNotCountedAgainSoon(t *testing.T) {
	w := newWorld()
	w.observe()
	counted := 0
	for range 40 { // seconds
		spin(w, time.Second, 10_000, 4, 0)
		if w.last.Count {
			counted++
		}
	}
	if counted < 1 || counted > 4 {
		t.Errorf("counted in %d of 40 seconds, want once at the start and once half a minute later", counted)
	}
}

func TestSpinningHasALength(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(6*time.Second, steady, 1, func(i int) {
		w.o.Progress++
		w.o.Request, w.o.Activity, w.o.Counting = 7, uint64(i), true
		w.o.EventWaits += 100
	})
	if w.last.Verdict != Spinning || w.last.Stall < 4*time.Second || w.last.Stall > 6*time.Second {
		t.Errorf("%s for %v, want spinning for about 5 s", w.last.Verdict, w.last.Stall)
	}
}
