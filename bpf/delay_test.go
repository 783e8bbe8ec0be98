package bpf

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that never sleeps is on a CPU or waits for one: the three clocks of
// its samples add up, as far as the kernel brings the CPU clock up to date,
// which is once in a tick.
func TestSamplesTellHowLongAThreadWaitedForACPU(t *testing.T) {
	s := open(t)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	one := unix.CPUSet{}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	watched, rival := spin(t), spin(t)
	for _, pid := range []int{watched, rival} {
		if err := unix.SchedSetaffinity(pid, &one); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Watch(Watch{PID: watched, TID: watched}); err != nil {
		t.Fatal(err)
	}
	const tick = 10 * time.Millisecond // of the slowest kernels
	samples := collect(t, s, 22)[2:]
	if samples[0].RunDelay == 0 {
		t.Fatal("the samples don't tell it")
	}
	first, last := samples[0], samples[len(samples)-1]
	waited := last.RunDelay - first.RunDelay
	if waited < 5*tick {
		t.Errorf("it waited for %v beside a rival, in 20 samples", waited)
	}
	if off := (last.When - first.When) - (last.CPUTime - first.CPUTime) - waited; off < -tick || off > tick {
		t.Errorf("in %v it had the CPU for %v and waited for %v: %v are missing", last.When-first.When, last.CPUTime-first.CPUTime, waited, off)
	}
}
