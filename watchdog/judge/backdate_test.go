package judge

import (
	"math/rand/v2"
	"testing"
	"time"
)

// lateSeen lets a known worker sleep in its event wait, serve other turns for
// before, then begin a turn that computes for unseen until a sample finds it,
// on a CPU of which it gets the share. A look follows at once.
func lateSeen(w *world, before, unseen time.Duration, share float64) {
	w.run(3*steady, steady, 1, func(int) { w.o.Progress++ })
	w.o.RunDelay = 500 * msec
	w.look(200*msec, func(int) { w.o.InWait = true })
	w.o.InWait = false
	delay := w.o.RunDelay
	compute := func(d time.Duration) {
		wall := time.Duration(float64(d) / share)
		w.o.CPUTime, w.o.Now, delay = w.o.CPUTime+d, w.o.Now+wall, delay+wall-d
	}
	w.o.Now += 100 * msec
	compute(before)
	w.o.Progress++
	w.o.TurnFrom = w.o.Now
	compute(unseen)
	w.o.Weight, w.o.RunDelay = steady, 0
	w.observe()
	w.o.Now += msec // it waits again
	w.o.Weight, w.o.Before, w.o.RunDelay = 0, w.o.Now, delay+msec
	w.observe()
	w.o.RunDelay = 0
}

func TestATurnIsLongerThanItWasSeen(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, late time.Duration
		share        float64
		more, want   time.Duration // CPU time after it was seen; of the stall then
	}{
		{"an idle worker on an idle CPU", 0, 18 * msec, 1, 200 * msec, 218 * msec},
		{"an idle worker on a crowded CPU", 0, 18 * msec, 0.25, 200 * msec, 218 * msec},
		{"not what other turns have used", 15 * msec, 5 * msec, 1, 200 * msec, 205 * msec},
		{"not more than between two samples", 0, time.Second, 1, 200 * msec, 200*msec + believed*steady},
	} {
		w := newWorld()
		w.observe()
		lateSeen(w, c.before, c.late, c.share)
		w.run(c.more, msec, 1, nil)
		if off := w.last.Stall - c.want; off < -msec || off > 0 {
			t.Errorf("%s: a stall of %v, want %v", c.name, w.last.Stall, c.want)
		}
	}
}

func TestATurnIsNeverTakenForLongerThanItIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	for range 2000 {
		before, late, share := upTo(60*msec), upTo(60*msec), 0.05+0.95*r.Float64()
		w := newWorld()
		w.observe()
		lateSeen(w, before, late, share)
		w.run(200*msec, msec, 1, nil)
		if w.last.Stall > late+201*msec || w.last.Stall < 199*msec {
			t.Fatalf("after %v of other turns %v were not seen, at %.0f %% of a CPU: a stall of %v", before, late, 100*share, w.last.Stall)
		}
	}
}

// Not every sample comes with a stack: the first one that does in a turn tells
// which handler runs, not that another one did before.
func TestTheFirstHandlerOfATurnIsNoProgress(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(3*steady, steady, 1, func(int) { w.o.Progress++; w.o.Activity = 1 })
	w.run(steady, steady, 1, func(int) { w.o.Progress++; w.o.Activity = 0 })
	w.run(10*steady, steady, 1, func(int) { w.o.Activity = 2 })
	if w.last.Stall != 10*steady {
		t.Errorf("a stall of %v, want %v", w.last.Stall, 10*steady)
	}
}

// A worker that no sample has met yet may be seen first by a look.
func TestALookMaySeeATurnFirst(t *testing.T) {
	w := newWorld()
	w.observe()
	w.o.RunDelay = 500 * msec
	w.look(200*msec, func(int) { w.o.InWait = true })
	w.o.InWait, w.o.TurnFrom = false, w.o.Now
	w.o.Progress++
	w.o.CPUTime, w.o.Now = w.o.CPUTime+18*msec, w.o.Now+18*msec
	w.o.Before = w.o.Now
	w.observe()
	w.o.RunDelay = 0
	w.run(5*steady, steady, 1, nil)
	w.o.Weight, w.o.Before, w.o.RunDelay = 0, w.o.Now, 500*msec
	w.o.Now++
	w.observe()
	if want := 5*steady + 18*msec; w.last.Stall < want-msec || w.last.Stall > want {
		t.Errorf("a stall of %v, want %v", w.last.Stall, want)
	}
}

func TestWithoutAWordThatTellsNothingIsAdded(t *testing.T) {
	w := newWorld()
	w.observe()
	lateSeen(w, 0, 18*msec, 1)
	w.o.Progress++ // another turn, of which no word tells
	w.o.TurnFrom = 0
	w.run(200*msec, msec, 1, nil)
	w.o.Weight, w.o.Before, w.o.RunDelay = 0, w.o.Now, 500*msec
	w.observe()
	if w.last.Stall > 200*msec {
		t.Errorf("a stall of %v, want at most 200 ms", w.last.Stall)
	}
}
