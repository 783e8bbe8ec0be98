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

func TestJudge(t *testing.T) {
	tests := []struct {
		name  string
		happ  func(w *world)
		want  Verdict
		never []Verdict
	}{
		{"a loop is a runaway", func(w *world) { w.run(400*msec, steady, 1, nil) }, Runaway, nil},
		{"a loop on a crowded CPU too", func(w *world) { w.run(400*msec, steady, 0.2, nil) }, Runaway, nil},
		{"a handler of 300 ms on a shared core is none", func(w *world) { w.run(323*msec, msec, 1, nil) }, Suspect, []Verdict{Runaway}},
		{"a picker of 300 ms is", func(w *world) { w.o.Proven = true; w.run(304*msec, msec, 1, nil) }, Runaway, nil},
		{"before 300 ms it is a suspect", func(w *world) { w.run(250*msec, steady, 1, nil) }, Suspect, []Verdict{Runaway}},
		{"before 100 ms nothing", func(w *world) { w.run(80*msec, steady, 1, nil) }, Healthy, []Verdict{Suspect}},
		{"the word moves", func(w *world) {
			w.run(5*time.Second, steady, 1, func(i int) { w.o.Progress++; w.o.Voluntary += 2 })
		}, Healthy, []Verdict{Suspect, Saturated}},
		{"stolen time charged to the thread is one sample", func(w *world) {
			w.run(30*msec, steady, 1, nil)
			w.o.CPUTime += 5 * time.Second
			w.o.Now += 5 * time.Second
			w.observe()
		}, Healthy, []Verdict{Suspect, Runaway}},
		{"also when it is suspected", func(w *world) {
			w.run(200*msec, 2*msec, 1, nil)
			w.o.CPUTime += 5 * time.Second
			w.o.Now += 5 * time.Second
			w.observe()
			w.run(80*msec, 2*msec, 1, nil)
		}, Suspect, []Verdict{Runaway}},
		{"ticks that miss a worker on a shared CPU take nothing off its clock", func(w *world) {
			w.run(340*msec, 3*steady, 0.5, func(int) { w.o.Weight = steady })
		}, Runaway, nil},
		{"stopped by a signal", func(w *world) {
			w.run(80*msec, steady, 1, nil)
			w.look(5*time.Second, func(int) { w.o.Stopped = true })
		}, Healthy, []Verdict{Suspect, Blocked, Runaway}},
		{"idle in its event wait", func(w *world) {
			w.look(10*time.Second, func(int) { w.o.InWait = true; w.o.Asleep = true })
		}, Healthy, []Verdict{Blocked}},
		{"asleep elsewhere", func(w *world) {
			w.look(1400*msec, func(int) { w.o.Asleep = true; w.o.Waiting = "wait4" })
		}, Blocked, []Verdict{Runaway}},
		{"asleep elsewhere for half a second", func(w *world) {
			w.look(600*msec, func(int) { w.o.Asleep = true })
			w.look(2*time.Second, func(int) { w.o.InWait = true })
		}, Healthy, []Verdict{Blocked}},
		{"throttled: runnable, hardly any CPU", func(w *world) {
			w.look(3*time.Second, func(int) { w.o.CPUTime += 10 * msec })
		}, Healthy, []Verdict{Suspect, Blocked, Runaway}},
		{"the machine was paused between two looks", func(w *world) {
			w.look(400*msec, func(int) { w.o.Asleep = true })
			w.o.Now += time.Hour
			w.observe()
			w.look(400*msec, func(int) { w.o.InWait = true })
		}, Healthy, []Verdict{Blocked}},
		{"a sleep loop", func(w *world) {
			for range 8 {
				w.look(200*msec, func(int) { w.o.Asleep = true; w.o.Waiting = "clock_nanosleep" })
				w.run(2*msec, 2*msec, 1, func(int) { w.o.Voluntary += 20 })
			}
		}, Blocked, []Verdict{Runaway}},
		{"a sleep loop on a crowded host", func(w *world) {
			for i := range 60 {
				w.look(200*msec, func(int) { w.o.Asleep = i%5 == 0; w.o.RunDelay += 160 * msec })
			}
		}, Blocked, []Verdict{Runaway}},
		{"waits for a CPU", func(w *world) {
			w.look(5*time.Second, func(int) { w.o.RunDelay += 200 * msec })
		}, Healthy, []Verdict{Blocked, Runaway}},
		{"waits for a lock of another worker", func(w *world) {
			w.look(1400*msec, func(int) { w.o.Asleep = true; w.o.LockOwner = 42 })
		}, LockVictim, []Verdict{Blocked}},
		{"waits for a lock that it holds itself", func(w *world) {
			w.look(1400*msec, func(int) { w.o.Asleep = true; w.o.LockOwner = 42; w.o.SelfOwned = true })
		}, Blocked, []Verdict{LockVictim}},
		{"spins for a lock of another worker", func(w *world) {
			w.o.LockOwner = 42
			w.run(500*msec, steady, 1, nil)
		}, LockVictim, []Verdict{Runaway}},
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
		{"timers for ever within one turn", func(w *world) {
			w.run(5*time.Second, steady, 1, func(i int) { w.o.Activity = uint64(1 + i) })
		}, Runaway, nil},
		{"two stale requests on the stack of a loop", func(w *world) {
			w.run(time.Second, steady, 1, func(i int) { w.o.Request = uint64(1 + i%2); w.o.Activity = 7 })
		}, Runaway, nil},
		{"saturated on a crowded host", func(w *world) {
			for i := range 200 {
				w.run(steady, steady, 0.1, func(int) { w.o.Request, w.o.Progress = uint64(i+1), uint64(i); w.o.Activity = uint64(i + 1) })
				w.o.Weight, w.o.RunDelay = 0, time.Duration(i)*180*msec
				w.observe()
				w.o.RunDelay = 0
			}
		}, Saturated, []Verdict{Suspect, Runaway}},
		{"held back by a quota", func(w *world) {
			for i := range 200 {
				w.run(steady, steady, 0.1, func(int) { w.o.Request, w.o.Progress = uint64(i+1), uint64(i); w.o.Activity = uint64(i + 1) })
				w.o.Weight, w.o.RunDelay, w.o.Throttled = 0, time.Duration(i)*180*msec, time.Duration(i)*170*msec
				w.observe()
				w.o.RunDelay, w.o.Throttled = 0, 0
			}
		}, Healthy, []Verdict{Suspect, Runaway, Saturated}},
		{"start-up may take long", func(w *world) {
			w.o.Starting = true
			w.run(3*time.Second, steady, 1, nil)
		}, Healthy, []Verdict{Suspect, Runaway, Saturated}},
		{"but not for ever", func(w *world) {
			w.o.Starting = true
			w.run(11*time.Second, steady, 1, nil)
		}, Runaway, []Verdict{Suspect}},
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
		{"sends one big answer", func(w *world) {
			w.run(6*time.Second, steady, 1, func(i int) {
				w.o.Progress++
				w.o.Request, w.o.Motion, w.o.Activity, w.o.Counting = 7, uint64(i), uint64(i), true
				w.o.EventWaits += 100
			})
		}, Saturated, []Verdict{Spinning, Runaway}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.observe()
			test.happ(w)
			if w.last.Verdict != test.want {
				t.Errorf("verdict %s (%s), want %s", w.last.Verdict, w.last.Reason, test.want)
			}
			for _, v := range test.never {
				if w.seen[v] {
					t.Errorf("verdict %s on the way", v)
				}
			}
		})
	}
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

func TestWhatUsuallyEndsIsGivenALittleLonger(t *testing.T) {
	for _, c := range []struct {
		usual, runs time.Duration
		proven      bool
		want        Verdict
	}{
		{0, 330 * msec, false, Runaway},
		{200 * msec, 330 * msec, false, Runaway}, // of no matter
		{320 * msec, 390 * msec, false, Suspect},
		{320 * msec, 405 * msec, false, Runaway},
		{320 * msec, 305 * msec, true, Runaway},
		{5 * time.Second, 480 * msec, false, Suspect},
		{5 * time.Second, 495 * msec, false, Runaway}, // never much longer
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

func TestALiarStaysOneBetweenItsSamples(t *testing.T) {
	w := newWorld()
	w.observe()
	w.run(2*time.Second, steady, 1, func(i int) { w.o.Progress++; w.o.Activity = 7; w.o.Counting = i > 10 })
	w.look(400*msec, func(int) { w.o.Progress++ })
	if w.last.Verdict != Runaway || w.last.Stall < time.Second {
		t.Errorf("%s for %v after two looks, want a runaway of about 2 s", w.last.Verdict, w.last.Stall)
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

func TestWishes(t *testing.T) {
	w := newWorld()
	w.observe()
	if w.last.Burst || w.last.Close || w.last.Count {
		t.Errorf("a healthy worker is watched closely: %+v", w.last)
	}
	w.run(200*msec, steady, 1, nil)
	if !w.last.Burst || !w.last.Close {
		t.Errorf("a suspect is not watched closely: %+v", w.last)
	}
}
