package judge

import (
	"fmt"
	"time"
)

const (
	spinTurns    = 1000 // entries into the event wait in a second of CPU time
	leastSpin    = 8    // samples that a verdict of spinning needs
	leastCounted = 100 * time.Millisecond
	// What a loop that gets somewhere calls in a turn: the wait, and at least
	// one call that reads and one that writes. A descriptor that stays ready
	// is the wait alone, or the wait and a call that fails.
	leastCalls = 2.5
	// Whoever was found to be busy for good reasons is not counted again soon:
	// the tracepoints cost it something.
	doubtAgain = 30 * time.Second
)

// empty watches for a loop that turns at full CPU for nothing, without any
// request: a descriptor that is always ready, a timer that is always due.
type empty struct {
	fulls   int           // windows at full CPU in a row
	doubt   bool          // it looks like one; what it calls must be counted
	since   time.Duration // Now, since when
	denied  time.Duration // Now, when counting last showed work; 0: never
	counted Observation   // the first of this window that counts
}

// begin starts a new window.
func (e *empty) begin() { e.counted = Observation{} }

func (e *empty) add(o Observation) {
	if o.Counting && !e.counted.Counting {
		e.counted = o
	}
}

// close judges a whole window and says whether the loop turned for nothing in it.
func (e *empty) close(w *window, o Observation) bool {
	e.fulls++
	if !w.full {
		e.fulls = 0
	}
	// The first window at full CPU is sampled without stacks: requests would
	// not have been seen in it.
	looks := e.fulls >= 2 && w.words >= leastSpin && w.turns*2 >= w.words && w.withReq*4 <= w.looked &&
		(e.denied == 0 || o.Now-e.denied >= doubtAgain)
	turns, calls := e.rates(o)
	if looks && turns > 0 && (turns < spinTurns || calls > leastCalls) {
		looks, e.denied = false, o.Now
	}
	if e.doubt = looks; !looks {
		e.since = o.Now
	}
	return looks && turns > 0
}

// rates returns how often the loop turned in a second of the worker's own CPU
// time, and the system calls in a turn; 0 where too little was counted. On a
// crowded host a second of the wall holds little of that time.
func (e *empty) rates(o Observation) (turns, calls float64) {
	from, cpu := e.counted, o.CPUTime-e.counted.CPUTime
	if !o.Counting || !from.Counting || cpu < leastCounted || o.EventWaits <= from.EventWaits {
		return 0, 0
	}
	waits := float64(o.EventWaits - from.EventWaits)
	return waits / cpu.Seconds(), float64(o.Syscalls-from.Syscalls) / waits
}

func (e *empty) text(w *window, o Observation) string {
	turns, calls := e.rates(o)
	return fmt.Sprintf("%.0f turns of the loop in a second of CPU, at %.0f %% CPU, with %.1f system calls in each and no request for %s",
		turns, 100*w.share, calls, ms(o.Now-e.since))
}

// lingerer is the request that every sample shows, although its client's
// connection does not move. A loop that spins with short sleeps in between is
// not at full CPU, so few of its samples come with a stack: this is what they
// show then, and the reason to look closer.
type lingerer struct {
	request, motion uint64
	since, seen     time.Duration // Now of the first and of the last sample
	samples         int
}

func (r *lingerer) see(o Observation) {
	if o.Request != r.request || o.Motion != r.motion {
		*r = lingerer{request: o.Request, motion: o.Motion, since: o.Now}
	}
	r.seen = o.Now
	r.samples++
}

func (r *lingerer) lingers(now time.Duration) bool {
	const least, length = 4, 1500 * time.Millisecond
	return r.samples >= least && r.seen-r.since >= length && now-r.seen < time.Second
}
