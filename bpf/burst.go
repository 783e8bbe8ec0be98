package bpf

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Burst samples one watched thread at rate samples a second, each with its
// windows, instead of the steady rate. It lasts until Calm or Unwatch.
func (s *Sampler) Burst(w Watch, rate int) error {
	s.mu.Lock()
	_, on := s.bursts[w.TID]
	if !on {
		fd, err := openClock(w.TID, -1, rate, s.objects.Sample.FD())
		if err != nil {
			s.mu.Unlock()
			return thisHost().explain(stepEvent, err)
		}
		s.bursts[w.TID] = fd
	}
	s.mu.Unlock()
	v := watchValue(w)
	v.Period, v.FullEvery = period(rate), 1
	return s.objects.Watched.Put(uint32(w.TID), v)
}

// Calm ends the burst of a thread and returns it to the steady rate.
func (s *Sampler) Calm(w Watch) error {
	s.closeBurst(w.TID)
	return s.objects.Watched.Put(uint32(w.TID), watchValue(w))
}

func (s *Sampler) closeBurst(tid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fd, on := s.bursts[tid]; on {
		_ = unix.Close(fd)
		delete(s.bursts, tid)
	}
}

// burstPeriod reads back the period that the thread's burst runs at.
func (s *Sampler) burstPeriod(tid int) uint64 {
	var v samplerWatch
	if s.objects.Watched.Lookup(uint32(tid), &v) != nil {
		return 0
	}
	return v.Period
}

// period is the kernel's own arithmetic for a cpu-clock event with a
// frequency: whole nanoseconds, cut.
func period(rate int) uint64 { return uint64(time.Second) / uint64(rate) }

// openClock opens a cpu-clock event for a thread (pid > 0) or a CPU (pid -1)
// with the program attached. The caller closes the file descriptor.
func openClock(pid, cpu, rate, program int) (int, error) {
	if rate <= 0 || rate > 10_000 {
		return -1, fmt.Errorf("rate of %d samples a second: not within 1 to 10000", rate)
	}
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: uint64(rate), Bits: unix.PerfBitFreq | unix.PerfBitDisabled,
	}
	fd, err := unix.PerfEventOpen(&attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	// Attaching by ioctl works on every kernel since 4.1; links came with 5.15.
	err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program)
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
