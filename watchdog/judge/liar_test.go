package judge

import (
	"testing"
	"time"
)

func TestClocksThatLie(t *testing.T) {
	judgeAll(t, []story{
		{"a loop that updates the clock itself", func(w *world) {
			w.run(2*time.Second, steady, 1, func(i int) { w.o.Progress++; w.o.Activity = 7; w.o.Counting = i > 10 })
		}, Runaway, nil},
		{"the same handler again and again, with turns", func(w *world) {
			w.run(4*time.Second, steady, 1, func(i int) {
				w.o.Progress++
				w.o.Activity, w.o.Counting = 7, true
				w.o.EventWaits++
				w.o.Voluntary += 2
			})
		}, Healthy, []Verdict{Runaway, Suspect}},
	})
}

func TestALiarStaysOneBetweenItsSamples(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(2*time.Second, steady, 1, func(i int) { w.o.Progress++; w.o.Activity = 7; w.o.Counting = i > 10 })
	w.look(400*msec, func(int) { w.o.Progress++ })
	if w.last.Verdict != Runaway || w.last.Stall < time.Second {
		t.Errorf("%s for %v after two looks, want a runaway of about 2 s", w.last.Verdict, w.last.Stall)
	}
}
