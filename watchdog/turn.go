package watchdog

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// coarse is how far CLOCK_MONOTONIC_COARSE is behind at most: a tick.
var coarse = clockResolution(unix.CLOCK_MONOTONIC_COARSE)

func clockResolution(id int32) time.Duration {
	var ts unix.Timespec
	// The clock exists on every Linux that the sampler runs on.
	_ = unix.ClockGetres(id, &ts)
	return time.Duration(ts.Nano())
}

// Older turns are of no interest to the judge, and a word so old is none of
// this clock.
const turnOldest = time.Minute

// turnFrom returns by when the turn had begun that the progress word tells of,
// 0 if it does not tell. nginx's word is the coarse monotonic clock in
// milliseconds, read when the event wait returned; before 1.13.10 it is the
// time of day, which is far from any monotonic time.
func (w *worker) turnFrom(o *judge.Observation) time.Duration {
	if w.Kind != proxy.Nginx || !o.ProgressOK || o.Progress > uint64(o.Now/time.Millisecond) {
		return 0
	}
	from := time.Duration(o.Progress+1)*time.Millisecond + coarse
	if from >= o.Now || o.Now-from > turnOldest {
		return 0
	}
	return from
}
