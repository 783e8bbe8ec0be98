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

func TestSleepLoopsWithAClockThatMoves(t *testing.T) {
	naps := func(w *world, turns bool) {
		w.look(3*time.Second, func(i int) {
			w.o.Asleep, w.o.Waiting = true, "clock_nanosleep"
			w.o.Counting = w.last.Count
			w.o.Progress++
			w.o.CPUTime += msec
			if turns {
				w.o.EventWaits++
			}
		})
	}
	judgeAll(t, []story{
		{"a poll that updates the clock itself", func(w *world) { naps(w, false) }, Blocked, []Verdict{Runaway}},
		{"a library that blocks a little in each turn", func(w *world) { naps(w, true) }, Healthy, []Verdict{Blocked}},
		{"where nothing can be counted", func(w *world) {
			w.look(3*time.Second, func(int) { w.o.Asleep = true; w.o.Progress++ })
		}, Healthy, []Verdict{Blocked}},
		{"another request each time", func(w *world) {
			for i := range 30 {
				w.look(100*msec, func(int) { w.o.Asleep, w.o.Counting, w.o.Request = true, true, 0; w.o.Progress++ })
				w.run(msec, msec, 1, func(int) { w.o.Request = uint64(i + 1); w.o.Progress++ })
			}
		}, Healthy, []Verdict{Blocked}},
	})
}
