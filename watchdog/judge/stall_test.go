package judge

import (
	"testing"
	"time"
)

func TestStandingStill(t *testing.T) {
	judgeAll(t, []story{
		{"a loop is a runaway", func(w *world) { w.run(400*msec, steady, 1, nil) }, Runaway, nil},
		{"a loop on a crowded CPU too", func(w *world) { w.run(400*msec, steady, 0.2, nil) }, Runaway, nil},
		{"a handler of 300 ms on a shared core is none", func(w *world) { w.run(323*msec, msec, 1, nil) }, Suspect, []Verdict{Runaway}},
		{"a picker of 300 ms is", func(w *world) { w.o.Proven = true; w.run(304*msec, msec, 1, nil) }, Runaway, nil},
		{"before 300 ms it is a suspect", func(w *world) { w.run(250*msec, steady, 1, nil) }, Suspect, []Verdict{Runaway}},
		{"before 100 ms nothing", func(w *world) { w.run(80*msec, steady, 1, nil) }, Healthy, []Verdict{Suspect}},
		{"ticks that miss a worker on a shared CPU take nothing off its clock", func(w *world) {
			w.run(340*msec, 3*steady, 0.5, func(int) { w.o.Weight = steady })
		}, Runaway, nil},
		{"fifteen ticks in a row that miss it, as its turns on the CPU keep step with them", func(w *world) { missed(w, 150*msec) }, Runaway, nil},
		{"a pause of the machine that is charged to it is no such thing", func(w *world) { missed(w, 0) }, Suspect, []Verdict{Runaway}},
		{"two stale requests on the stack of a loop", func(w *world) {
			w.run(time.Second, steady, 1, func(i int) { w.o.Request = uint64(1 + i%2); w.o.Activity = 7 })
		}, Runaway, nil},
		{"timers for ever within one turn", func(w *world) {
			w.run(5*time.Second, steady, 1, func(i int) { w.o.Activity = uint64(1 + i) })
		}, Runaway, nil},
	})
}

// missed lets a worker on a shared CPU compute for 350 ms, of which 150 are
// charged between two samples while it waits for the CPU for so long.
func missed(w *world, waits time.Duration) {
	shares := func(d, period time.Duration) {
		w.run(d, period, 0.5, func(int) { w.o.RunDelay = max(w.o.RunDelay, msec) + period })
	}
	shares(5*steady, steady)
	w.o.CPUTime, w.o.RunDelay, w.o.Now = w.o.CPUTime+150*msec, w.o.RunDelay+waits, w.o.Now+150*msec+waits
	shares(98*msec, 2*msec)
}

func TestProgressClears(t *testing.T) {
	judgeAll(t, []story{
		{"the word moves", func(w *world) {
			w.run(5*time.Second, steady, 1, func(i int) { w.o.Progress++; w.o.Voluntary += 2 })
		}, Healthy, []Verdict{Suspect, Saturated}},
		{"many requests within one turn", func(w *world) {
			w.run(4*time.Second, steady, 1, func(i int) { w.o.Request = uint64(1 + i/2); w.o.Activity = uint64(1 + i/2) })
		}, Saturated, []Verdict{Suspect, Runaway}},
		{"timers that fell due together", func(w *world) {
			for round := range 6 {
				w.run(400*msec, steady, 1, func(i int) { w.o.Activity = uint64(1 + 100*round + i) })
				w.look(200*msec, func(int) { w.o.InWait = true; w.o.Voluntary++ })
				w.o.InWait = false
			}
		}, Saturated, []Verdict{Suspect, Runaway}},
		{"idle in its event wait", func(w *world) {
			w.look(10*time.Second, func(int) { w.o.InWait = true; w.o.Asleep = true })
		}, Healthy, []Verdict{Blocked}},
	})
}

func TestWhatUsuallyEndsIsGivenALittleLonger(t *testing.T) {
	for _, c := range []struct {
		usual, runs time.Duration
		proven      bool
		want        Verdict
	}{
		{0, 336 * msec, false, Suspect}, // 300 ms of a core of one's own
		{0, 350 * msec, false, Runaway},
		{200 * msec, 350 * msec, false, Runaway}, // of no matter
		{320 * msec, 390 * msec, false, Suspect},
		{320 * msec, 405 * msec, false, Runaway},
		{320 * msec, 305 * msec, true, Runaway},
		{5 * time.Second, 505 * msec, false, Suspect},
		{5 * time.Second, 525 * msec, false, Runaway}, // never much longer
	} {
		w := newWorld()
		w.usual, w.o.Proven = c.usual, c.proven
		w.observe()
		w.run(c.runs, msec, 1, nil)
		if w.last.Verdict != c.want {
			t.Errorf("%v, usual are %v, proven %v: %s (%s), want %s", c.runs, c.usual, c.proven, w.last.Verdict, w.last.Reason, c.want)
		}
	}
}

func TestAVersionThatAnotherIsStuckOnIsGivenLess(t *testing.T) {
	for _, c := range []struct {
		proven, condemned bool
		runs              time.Duration
		want              Verdict
	}{
		{true, true, 90 * msec, Healthy},
		{true, true, 105 * msec, Runaway},
		{true, false, 105 * msec, Suspect},
		{false, true, 105 * msec, Suspect}, // no picker runs any more
	} {
		w := newWorld()
		w.o.Proven, w.o.Condemned = c.proven, c.condemned
		w.observe()
		w.run(c.runs, msec, 1, nil)
		if w.last.Verdict != c.want {
			t.Errorf("%+v: %s (%s)", c, w.last.Verdict, w.last.Reason)
		}
	}
}

func TestATurnOfTimersThatNeverEndsIsOneStandstill(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(limits().Turn+5*steady, steady, 1, func(i int) { w.o.Activity = uint64(1 + i) })
	if w.last.Verdict != Runaway || w.last.Stall < limits().Turn {
		t.Errorf("%s for %v (%s), want a runaway of %v", w.last.Verdict, w.last.Stall, w.last.Reason, limits().Turn)
	}
}

func TestAnEndedStallTellsItsLength(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(250*msec, steady, 1, nil)
	w.run(steady, steady, 1, func(int) { w.o.Progress++ })
	if w.ended < 200*msec || w.ended > 270*msec || w.last.Verdict != Healthy {
		t.Errorf("a stall of %v ended with %s, want about 250 ms and healthy", w.ended, w.last.Verdict)
	}
}

func TestALongTurnIsToldEvenIfItMovedOn(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(400*msec, steady, 1, func(i int) { w.o.Activity = uint64(1 + i) })
	w.look(200*msec, func(int) { w.o.InWait = true })
	if w.ended < 350*msec || w.ended > 420*msec || w.seen[Suspect] {
		t.Errorf("a turn of %v, suspected %v; want about 400 ms and no suspicion", w.ended, w.seen[Suspect])
	}
}
