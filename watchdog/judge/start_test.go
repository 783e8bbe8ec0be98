package judge

import (
	"testing"
	"time"
)

func TestStartUp(t *testing.T) {
	judgeAll(t, []story{
		{"start-up may take long", func(w *world) {
			w.o.Starting = true
			w.run(3*time.Second, steady, 1, nil)
		}, Healthy, []Verdict{Suspect, Runaway, Saturated}},
		{"but not for ever", func(w *world) {
			w.o.Starting = true
			w.run(11*time.Second, steady, 1, nil)
		}, Runaway, []Verdict{Suspect}},
		{"its end is seen before the first turn", func(w *world) {
			w.o.Starting = true
			w.run(3*time.Second, steady, 1, nil)
			w.o.Starting = false
			w.run(2*steady, steady, 1, nil)
		}, Healthy, []Verdict{Suspect, Runaway}},
		{"the first turn does not end", func(w *world) {
			w.o.Starting = true
			w.run(3*time.Second, steady, 1, nil)
			w.o.Starting = false
			w.run(400*msec, steady, 1, nil)
		}, Runaway, nil},
	})
}

func TestAStartUpIsMeasuredFromItsBirth(t *testing.T) {
	w := newWorld()
	w.o.Starting, w.o.CPUTime = true, 900*msec // found late
	w.observe()
	w.run(1100*msec, steady, 1, nil)
	w.o.Starting = false
	w.run(steady, steady, 1, func(int) { w.o.Progress++ })
	if w.ended < 1900*msec || w.ended > 2100*msec {
		t.Errorf("a start-up of %v, want about 2 s", w.ended)
	}
}
