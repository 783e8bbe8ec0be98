package judge

import (
	"math/rand/v2"
	"testing"
	"time"
)

// lateSeen lets a known worker serve other turns for before, since it was seen
// last, then begin a turn that computes for unseen until a sample finds it. It
// gets these shares of a CPU.
func lateSeen(w *world, before, unseen time.Duration, shareBefore, share float64) {
	w.o.RunDelay = 500 * msec
	w.run(3*steady, steady, 1, func(int) { w.o.Progress++ })
	compute := func(d time.Duration, share float64) {
		wall := time.Duration(float64(d) / share)
		w.o.CPUTime, w.o.Now, w.o.RunDelay = w.o.CPUTime+d, w.o.Now+wall, w.o.RunDelay+wall-d
	}
	compute(before, shareBefore)
	w.o.Progress++
	w.o.TurnFrom = w.o.Now + 1
	compute(unseen, share)
	w.o.Weight = steady
	w.observe()
}

func TestATurnIsLongerThanItWasSeen(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, late time.Duration
		share        float64
		more, want   time.Duration // CPU time after it was seen; of the stall then
	}{
		{"an idle CPU", 0, 18 * msec, 1, 200 * msec, 218 * msec},
		{"a crowded CPU", 0, 18 * msec, 0.25, 200 * msec, 218 * msec},
		{"not what other turns have used", 15 * msec, 5 * msec, 1, 200 * msec, 205 * msec},
		{"nor that on a crowded CPU", 15 * msec, 5 * msec, 0.2, 200 * msec, 205 * msec},
		{"a CPU that is shared, and ticks that keep step with the turns on it", 0, 150 * msec, 0.5, 200 * msec, 350 * msec},
		{"not more than is believed", 0, time.Second, 1, 200 * msec, 200*msec + mostUnseen},
	} {
		w := newWorld()
		w.observe()
		lateSeen(w, c.before, c.late, c.share, c.share)
		w.run(c.more, msec, 1, nil)
		if off := w.last.Stall - c.want; off < -msec || off > 0 {
			t.Errorf("%s: a stall of %v, want %v", c.name, w.last.Stall, c.want)
		}
	}
}

// Whatever share of a CPU it had before: what other observations saw of other
// turns is never part of it, nor more than the time since it began.
func TestATurnIsNotTakenForMuchLongerThanItIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	for range 2000 {
		before, late := upTo(60*msec), upTo(60*msec)
		w := newWorld()
		w.observe()
		share := 0.05 + 0.95*r.Float64()
		lateSeen(w, before, late, 0.05+0.95*r.Float64(), share)
		w.run(200*msec, msec, 1, nil)
		most := min(before+late, time.Duration(float64(late)/share))
		if w.last.Stall > most+201*msec || w.last.Stall < 199*msec {
			t.Fatalf("%v of other turns, then %v were not seen, at %.0f %% of a CPU: a stall of %v", before, late, 100*share, w.last.Stall)
		}
	}
}

// A request that ends is progress too, but the turn began before it.
func TestAStandstillAfterARequestDoesNotBeginWithTheTurn(t *testing.T) {
	w := newWorld()
	w.observe()
	lateSeen(w, 0, 5*msec, 1, 1)
	w.run(3*steady, steady, 1, func(int) { w.o.Request = 1 })
	w.run(steady, steady, 1, func(int) { w.o.Request = 2 })
	w.run(200*msec, msec, 1, nil)
	if w.last.Stall != 200*msec {
		t.Errorf("a stall of %v, want the 200 ms since another request was seen", w.last.Stall)
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
	w.o.InWait, w.o.TurnFrom = false, w.o.Now+1
	w.o.Progress++
	w.o.CPUTime, w.o.Now = w.o.CPUTime+18*msec, w.o.Now+18*msec
	w.o.Before = w.o.Now
	w.observe()
	w.run(5*steady, steady, 1, nil)
	if want := 5*steady + 18*msec; w.last.Stall < want-msec || w.last.Stall > want {
		t.Errorf("a stall of %v, want %v", w.last.Stall, want)
	}
}

// Where the word does not say when the turn began, or the kernel does not count
// how long a thread waits for a CPU.
func TestWhatIsNotToldIsNotAdded(t *testing.T) {
	for name, take := range map[string]func(*Observation){
		"no word":      func(o *Observation) { o.TurnFrom = 0 },
		"no run delay": func(o *Observation) { o.RunDelay = 0 },
	} {
		w := newWorld()
		w.observe()
		lateSeen(w, 0, 18*msec, 1, 1)
		w.o.Progress++ // another turn
		w.o.CPUTime, w.o.Now, w.o.TurnFrom = w.o.CPUTime+18*msec, w.o.Now+18*msec, w.o.Now+1
		take(&w.o)
		w.observe()
		w.run(200*msec, msec, 1, nil)
		if w.last.Stall != 200*msec {
			t.Errorf("%s: a stall of %v, want 200 ms", name, w.last.Stall)
		}
	}
}
