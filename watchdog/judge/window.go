package judge

import (
	"fmt"
	"time"
)

const (
	windowLength  = time.Second
	windowLongest = 4 * time.Second // on a crowded host a second holds few samples
	windowSamples = 10
	fullShare     = 0.6  // of the wall, on a CPU or ready for one: a crowded host has fewer CPUs to give
	leastShare    = 0.05 // of the wall, on a CPU
	mostThrottled = 0.2  // of the wall: what a quota holds back is not busy
	spinShare     = 0.1  // a loop that spins with short sleeps in between
	restlessRate  = 10   // voluntary switches a second: below, it never runs out of work
	leastHandlers = 5    // different handlers within a window, or it is one long one
	// Long handlers are few in a second, and look like the one long answer of a
	// worker that rests in between: so it must never rest, for some seconds.
	restlessLong = 1 // voluntary switches a second
	longHandler  = 500 * time.Millisecond
)

// window is what happened within the last second: it tells a worker that has
// too much to do from one that turns its loop for nothing.
type window struct {
	from      Observation
	samples   int // that could tell a request or a handler
	handlers  int // changes of handler
	last      uint64
	works     int // changes of handler or request
	lastWork  uint64
	past      [3]work // of the windows before, while they were full
	request   uint64  // the request most often seen, by majority vote
	votes     int
	withReq   int
	sameReq   int
	motions   [4]uint64
	nMotions  int
	turns     int // samples with a moved word
	words     int
	looked    int // of these, with a stack that was looked at
	lastWord  uint64
	spinSince time.Duration
	delays    span // of the run delay
	throttled span
	share     float64 // of the wall, on a CPU
	ready     float64 // of the wall, on a CPU or ready for one
	slept     float64 // voluntary switches a second

	result  Verdict // of the last whole window
	reason  string
	full    bool // the last whole window was at full CPU
	doubt   bool // one request took it all, without moving on
	repeats int
	empty   empty
	one     lingerer
}

// work is what was done in a window.
type work struct {
	works int
	cpu   time.Duration
}

// span is how far a total grew.
type span struct{ from, to time.Duration }

func (s *span) add(total time.Duration) {
	if total == 0 {
		return
	}
	if s.from == 0 {
		s.from = total
	}
	s.to = max(s.to, total)
}

func (s span) length() time.Duration { return s.to - s.from }
func (s span) next() span            { return span{s.to, s.to} }

// restart begins a new window and keeps what the last ones said.
func (w *window) restart(o Observation) {
	*w = window{from: o, delays: w.delays.next(), throttled: w.throttled.next(), lastWord: o.Progress, last: w.last, lastWork: w.lastWork, past: w.past, request: w.request, spinSince: w.spinSince,
		result: w.result, reason: w.reason, full: w.full, doubt: w.doubt, repeats: w.repeats, empty: w.empty, one: w.one}
	w.empty.begin()
	w.empty.add(o)
}

func (w *window) busy() bool     { return w.full }
func (w *window) doubtful() bool { return w.doubt || w.empty.doubt }

// spins returns since when the worker spins, if the last whole window said so.
func (w *window) spins() time.Duration {
	if w.doubt {
		return w.spinSince
	}
	return w.empty.since
}

// add counts one observation.
func (w *window) add(o Observation) {
	w.empty.add(o)
	w.delays.add(o.RunDelay)
	if o.Weight == 0 {
		w.throttled.add(o.Throttled)
		return
	}
	if o.ProgressOK {
		w.words++
		if !o.Unseen {
			w.looked++
		}
		if o.Progress != w.lastWord {
			w.turns++
		}
		w.lastWord = o.Progress
	}
	if o.Activity != 0 {
		w.samples++
		if o.Activity != w.last {
			w.handlers++
		}
		if o.Activity != w.last || o.Request != 0 && o.Request != w.lastWork {
			w.works++
		}
		w.last = o.Activity
		if o.Request != 0 {
			w.lastWork = o.Request
		}
	}
	w.vote(o)
}

// vote finds the request that most samples show, and whether its client's
// connection moves on.
func (w *window) vote(o Observation) {
	if o.Request == 0 {
		return
	}
	w.one.see(o)
	w.withReq++
	switch {
	case o.Request == w.request:
		w.votes++
		w.sameReq++
		w.move(o.Motion)
	case w.votes > 0:
		w.votes--
	default:
		w.request, w.votes, w.sameReq, w.nMotions = o.Request, 1, 1, 0
		w.spinSince = o.Now
		w.move(o.Motion)
	}
}

func (w *window) move(motion uint64) {
	for _, m := range w.motions[:min(w.nMotions, len(w.motions))] {
		if m == motion {
			return
		}
	}
	if w.nMotions < len(w.motions) {
		w.motions[w.nMotions] = motion
	}
	w.nMotions++
}

// verdict closes the window when it is long enough and returns what the last
// whole one said.
func (w *window) verdict(o Observation, l Limits) (Verdict, string) {
	if o.Stopped || o.Starting {
		w.result = Healthy
		w.restart(o)
		return Healthy, ""
	}
	if length := o.Now - w.from.Now; length >= windowLength {
		w.measure(o)
		if w.samples >= windowSamples || length >= windowLongest || !w.full && !w.one.lingers(o.Now) {
			w.close(o, l)
			w.restart(o)
		}
	}
	if w.result == "" {
		return Healthy, ""
	}
	return w.result, w.reason
}

// measure says how busy the worker was within the window.
func (w *window) measure(o Observation) {
	wall := o.Now - w.from.Now
	w.share = float64(o.CPUTime-w.from.CPUTime) / float64(wall)
	w.slept = float64(o.Voluntary-w.from.Voluntary) / wall.Seconds()
	w.ready = w.share + float64(w.delays.length())/float64(wall)
	w.full = w.ready >= fullShare && w.share >= leastShare && w.slept < restlessRate &&
		float64(w.throttled.length()) < mostThrottled*float64(wall)
}

// close judges a whole window that was measured.
func (w *window) close(o Observation, l Limits) {
	stuck := w.share >= spinShare && w.withReq >= leastSpin && w.sameReq*5 >= w.withReq*4 && w.nMotions <= len(w.motions)
	w.doubt = stuck && w.turns*2 >= w.words
	before := w.result
	w.result, w.reason = Healthy, ""
	if !w.doubt {
		w.spinSince = o.Now
	}
	long := w.long(o)
	nothing := w.empty.close(w, o)
	rate, _ := w.empty.rates(o)
	switch {
	case w.doubt && rate >= spinTurns && o.Now-w.spinSince >= l.Window:
		w.result = Spinning
		w.reason = fmt.Sprintf("%.0f turns of the loop in a second of CPU, at %.0f %% CPU, for one request that does not move on for %s",
			rate, 100*w.share, ms(o.Now-w.spinSince))
	case nothing && o.Now-w.empty.since >= l.Window:
		w.result, w.reason = Spinning, w.empty.text(w, o)
	case w.full && w.handlers >= leastHandlers && w.handlers*8 >= w.samples, long:
		w.repeats++
		// One busy second is no state; and it takes two quiet ones to leave it.
		if w.repeats >= 2 || before == Saturated {
			w.result = Saturated
			w.reason = fmt.Sprintf("%.0f %% CPU (%.0f %% with the wait for one) and %.0f sleeps a second, but progress: %d handlers in %d samples",
				100*w.share, 100*min(w.ready, 1), w.slept, max(w.handlers, w.works), w.samples)
		}
	default:
		w.repeats = 0
	}
}

// long says that a worker which never rests does one long handler after the
// other, and takes this window in.
func (w *window) long(o Observation) bool {
	if !w.full || w.slept >= restlessLong {
		w.past = [len(w.past)]work{}
		return false
	}
	sum := work{works: w.works, cpu: o.CPUTime - w.from.CPUTime}
	now := sum
	for _, p := range w.past {
		sum.works += p.works
		sum.cpu += p.cpu
	}
	copy(w.past[1:], w.past[:])
	w.past[0] = now
	return sum.works >= leastHandlers && sum.cpu <= time.Duration(sum.works)*longHandler
}
