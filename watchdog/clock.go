package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is where the agent gets the time from.
type clock struct {
	wall func() time.Time
	mono func() time.Duration // CLOCK_MONOTONIC, as samples have it
	boot func() time.Duration // CLOCK_BOOTTIME, as start times of processes have it
}

func systemClock() clock {
	return clock{
		wall: time.Now,
		mono: func() time.Duration { return kernelClock(unix.CLOCK_MONOTONIC) },
		boot: func() time.Duration { return kernelClock(unix.CLOCK_BOOTTIME) },
	}
}

func kernelClock(id int32) time.Duration {
	var ts unix.Timespec
	// Both clocks exist on every Linux that the sampler runs on.
	_ = unix.ClockGettime(id, &ts)
	return time.Duration(ts.Nano())
}

// wallAt converts a time of the monotonic clock into wall time.
func (c clock) wallAt(mono time.Duration) time.Time {
	return c.wall().Add(mono - c.mono())
}
