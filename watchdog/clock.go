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
	mono, at := monotonic()
	return clock{
		wall: time.Now,
		// Go reads the same clock without a system call.
		mono: func() time.Duration { return mono + time.Since(at) },
		boot: func() time.Duration { return kernelClock(unix.CLOCK_BOOTTIME) },
	}
}

// monotonic reads the monotonic clock as the kernel tells it and as Go has it,
// at one moment: as close to each other as a few tries give.
func monotonic() (mono time.Duration, at time.Time) {
	const near, tries = 20 * time.Microsecond, 50
	best := time.Duration(1<<63 - 1)
	for range tries {
		before := kernelClock(unix.CLOCK_MONOTONIC)
		now := time.Now()
		apart := kernelClock(unix.CLOCK_MONOTONIC) - before
		if apart < best {
			best, mono, at = apart, before+apart/2, now
		}
		if best <= near {
			break
		}
	}
	return mono, at
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
