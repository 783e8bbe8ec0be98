package judge

import (
	"testing"
	"time"
)

func TestNotItsOwnDoing(t *testing.T) {
	judgeAll(t, []story{
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
		{"stopped by a signal", func(w *world) {
			w.run(80*msec, steady, 1, nil)
			w.look(5*time.Second, func(int) { w.o.Stopped = true })
		}, Healthy, []Verdict{Suspect, Blocked, Runaway}},
		{"throttled: runnable, hardly any CPU", func(w *world) {
			w.look(3*time.Second, func(int) { w.o.CPUTime += 10 * msec })
		}, Healthy, []Verdict{Suspect, Blocked, Runaway}},
		{"the machine was paused between two looks", func(w *world) {
			w.look(400*msec, func(int) { w.o.Asleep = true })
			w.o.Now += time.Hour
			w.observe()
			w.look(400*msec, func(int) { w.o.InWait = true })
		}, Healthy, []Verdict{Blocked}},
		{"waits for a CPU", func(w *world) {
			w.look(5*time.Second, func(int) { w.o.RunDelay += 200 * msec })
		}, Healthy, []Verdict{Blocked, Runaway}},
		{"held back by a quota", func(w *world) {
			for i := range 200 {
				w.run(steady, steady, 0.1, func(int) { w.o.Request, w.o.Progress = uint64(i+1), uint64(i); w.o.Activity = uint64(i + 1) })
				w.o.Weight, w.o.RunDelay, w.o.Throttled = 0, time.Duration(i)*180*msec, time.Duration(i)*170*msec
				w.observe()
				w.o.RunDelay, w.o.Throttled = 0, 0
			}
		}, Healthy, []Verdict{Suspect, Runaway, Saturated}},
	})
}

func TestAsleep(t *testing.T) {
	judgeAll(t, []story{
		{"asleep elsewhere", func(w *world) {
			w.look(1400*msec, func(int) { w.o.Asleep = true; w.o.Waiting = "wait4" })
		}, Blocked, []Verdict{Runaway}},
		{"asleep elsewhere for half a second", func(w *world) {
			w.look(600*msec, func(int) { w.o.Asleep = true })
			w.look(2*time.Second, func(int) { w.o.InWait = true })
		}, Healthy, []Verdict{Blocked}},
		{"asleep for seconds in its start-up", func(w *world) {
			w.look(8*time.Second, func(int) { w.o.Starting, w.o.Asleep = true, true })
		}, Healthy, []Verdict{Blocked}},
		{"asleep for ever in its start-up", func(w *world) {
			w.look(12*time.Second, func(int) { w.o.Starting, w.o.Asleep = true, true })
		}, Blocked, nil},
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
	})
}

func TestLocks(t *testing.T) {
	judgeAll(t, []story{
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
	})
}
