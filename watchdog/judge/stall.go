package judge

import (
	"fmt"
	"time"
)

// A stall shorter than this many samples is never called one: a pause of the
// machine is one sample.
const leastSamples = 5

// stall is the standstill that a worker is in.
type stall struct {
	stretch                 // since the last progress
	wall      time.Duration // wall time that looks cover
	delayFrom time.Duration // RunDelay then
	delay     time.Duration // waited for a CPU since
	looks     int           // that saw it asleep outside of its wait
	seen      bool          // by a look
	seenAt    time.Duration // when first
	lastLook  time.Duration
	given     bool // it was made to begin where its turn began
}

// length is the stall by its strictest clock: CPU time, or asleep the wall.
func (s stall) length() time.Duration {
	return max(s.stretch.length(), s.asleep())
}

// asleep is the wall time that the worker spent neither on a CPU nor waiting
// for one, as far as looks saw it asleep outside of its event wait. A worker
// that sleeps a little again and again waits for a CPU in between.
func (s stall) asleep() time.Duration {
	if s.looks < leastLooks {
		return 0
	}
	return max(0, s.wall-s.cpu-s.delay)
}

// Sleep needs so many looks that saw it.
const leastLooks = 3

// restart begins a new standstill now.
func (s *State) restart(o Observation) {
	s.stall = stall{lastLook: o.Now, delayFrom: s.runDelay}
	s.stall.restart(o)
}

// progress moves the stall's clocks on. It returns the length of the
// standstill that this observation ends, 0 if it ends none.
func (s *State) progress(o Observation, l Limits) time.Duration {
	if s.moved(o, l) {
		ended := s.stall.length()
		s.restart(o)
		return ended
	}
	s.stall.add(o)
	if o.Weight == 0 {
		s.look(o)
	}
	if t := s.turn.timers; t.length() >= l.Turn && t.cpuFrom < s.stall.cpuFrom {
		s.stall.stretch = t // seen from here, nothing in this turn was progress
	}
	return 0
}

// moved says whether the observation is proof of progress.
func (s *State) moved(o Observation, l Limits) bool {
	wordMoved := o.ProgressOK && s.turn.wordOK && o.Progress != s.turn.word
	if o.ProgressOK {
		s.turn.word, s.turn.wordOK = o.Progress, true
	}
	startUpEnded := s.last.Starting && !o.Starting // by the title that it gives itself before its first turn
	requestEnded := s.turn.newRequest(o.Request) || s.turn.newPick(o.Picks)
	s.turn.measure(o, wordMoved)
	handlerEnded := s.turn.newHandler(o.Activity)
	if wordMoved || startUpEnded || requestEnded || o.InWait || o.Stopped {
		s.turn.timers.restart(o)
		if !requestEnded {
			s.turn.seen = 0
		}
		if o.Activity == 0 {
			s.turn.handler = 0 // what ran before this turn, or may have ended since
		}
		return true
	}
	// Other handlers run within one turn, such as timers that fell due
	// together. That is progress, unless the turn never ends.
	s.turn.timers.add(o)
	return handlerEnded && s.turn.timers.length() < l.Turn
}

// turn is what was seen within the current turn of the loop.
type turn struct {
	word    uint64
	wordOK  bool
	handler uint64
	picks   uint64
	request [8]uint64 // requests seen
	seen    int

	begun  bool
	whole  stretch       // since the word moved
	timers stretch       // since the word moved or a request ended
	ended  time.Duration // length of the turn that this observation ends
}

// stretch is CPU time since some moment, by both clocks.
type stretch struct {
	from    time.Duration // Now at its begin
	cpuFrom time.Duration // CPUTime then
	cpu     time.Duration // charged since
	sampled time.Duration // of that, what samples bear witness to
	samples int
	last    time.Duration // CPUTime of the last sample
	waited  time.Duration // RunDelay of the last sample; 0: not known
}

func (s *stretch) restart(o Observation) {
	*s = stretch{from: o.Now, cpuFrom: o.CPUTime, last: o.CPUTime, waited: o.RunDelay}
}

// A worker that shares its CPU is missed by some ticks and met by others: what
// it was charged between two samples is believed up to so many periods. A pause
// of the machine, charged by a hypervisor that hides it, is no more than that.
// Ticks may even miss it fifteen times in a row, where its turns on the CPU keep
// step with them; then it waits for the CPU between its turns, about as long as
// it has it, and as much more is believed. In a pause it does not wait.
const believed = 5

// trusted is how much of what was charged since the last sample is believed.
func (s *stretch) trusted(o Observation) time.Duration {
	most := believed * o.Weight
	if s.waited > 0 && o.RunDelay > s.waited {
		most += o.RunDelay - s.waited
	}
	return max(0, min(o.CPUTime-s.last, most))
}

func (s *stretch) add(o Observation) {
	s.cpu = max(s.cpu, o.CPUTime-s.cpuFrom)
	if o.Weight > 0 {
		s.sampled += s.trusted(o)
		s.last, s.waited = max(s.last, o.CPUTime), o.RunDelay
		s.samples++
	}
}

// length is what samples bear witness to, and at most what was charged.
func (s *stretch) length() time.Duration {
	if s.samples < leastSamples {
		return 0
	}
	return min(s.cpu, s.sampled)
}

// measure follows how long the turn takes by the CPU clock, whatever it serves
// meanwhile. It notes the length of a turn that ends.
func (t *turn) measure(o Observation, wordMoved bool) {
	t.ended = 0
	if wordMoved || o.InWait || o.Stopped || !t.begun {
		t.ended = t.whole.length()
		t.begun = true
		t.whole.restart(o)
		return
	}
	t.whole.add(o)
}

// newRequest says that another request is being worked on than before. One
// that was seen in this turn already proves nothing: stale words of a stack
// may show two requests in turns.
func (t *turn) newRequest(request uint64) bool {
	if request == 0 {
		return false
	}
	for _, r := range t.request[:min(t.seen, len(t.request))] {
		if r == request {
			return false
		}
	}
	t.request[t.seen%len(t.request)] = request
	t.seen++
	return t.seen > 1
}

func (t *turn) newPick(picks uint64) bool {
	changed := picks != 0 && t.picks != 0 && picks != t.picks
	if picks != 0 {
		t.picks = picks
	}
	return changed
}

func (t *turn) newHandler(activity uint64) bool {
	if activity == 0 {
		return false
	}
	changed := t.handler != 0 && activity != t.handler
	t.handler = activity
	return changed
}

// look adds what a look from outside saw.
func (s *State) look(o Observation) {
	if !s.stall.seen {
		s.stall.seenAt = o.Now
	} else {
		s.stall.wall += min(o.Now-s.stall.lastLook, longestGap)
	}
	// Until the first look that saw no progress it may have been well.
	s.stall.seen, s.stall.lastLook = true, o.Now
	if o.Asleep {
		s.stall.looks++
	}
	if o.RunDelay > 0 {
		s.stall.delay = o.RunDelay - s.stall.delayFrom
	}
}

// A gap between two looks counts at most this much: if the agent itself, or
// the whole machine, was paused, the worker is not to blame.
const longestGap = 300 * time.Millisecond

// Where no crumb proves that a picker runs, a handler may just be long; and what
// takes 300 ms on a core of one's own takes up to 15 % more CPU time on one that
// is shared with others, hardly ever more. So the threshold is higher by so many
// percent there: no more, since what never ends must be told within 350 ms.
const doubt = 13

// patience is the threshold for a handler of which nothing proves that it must
// be quick. Where such handlers are known to end by themselves a little later,
// it is a quarter above theirs: the same handler would else be a line of the
// log now and an incident then, by the noise of the clock.
func patience(l Limits) time.Duration {
	least := l.Runaway + l.Runaway*doubt/100
	most := least + least/2
	return max(least, min(l.Usual+l.Usual/4, most))
}

// onCPU judges a worker that uses CPU and makes no progress.
func (s *State) onCPU(o Observation, l Limits) (Verdict, string) {
	cpu := s.stall.stretch.length()
	if o.Starting {
		if cpu >= l.Young {
			return Runaway, fmt.Sprintf("%s of CPU in its start-up without a first turn of the loop (grace of %s used up)", ms(cpu), ms(l.Young))
		}
		return Healthy, ""
	}
	lock := o.LockOwner
	if lock == 0 {
		lock = s.last.LockOwner
	}
	runaway := l.Runaway
	switch {
	case !o.Proven:
		runaway = patience(l)
	case o.Condemned: // whoever shares a CPU with such workers takes long to use 300 ms
		runaway = l.Suspect
	}
	switch {
	case cpu >= runaway && lock != 0 && !o.SelfOwned:
		return LockVictim, fmt.Sprintf("%s of CPU in a wait for a lock that worker %d owns", ms(cpu), lock)
	case cpu >= runaway:
		return Runaway, fmt.Sprintf("%s of CPU without progress over %d samples (%s of wall time)", ms(cpu), s.stall.samples, ms(o.Now-s.stall.from))
	case cpu >= l.Suspect:
		return Suspect, fmt.Sprintf("%s of CPU without progress over %d samples", ms(cpu), s.stall.samples)
	}
	return Healthy, ""
}

// offCPU judges a worker that sleeps somewhere else than in its event wait.
func (s *State) offCPU(o Observation, l Limits) (Verdict, string) {
	asleep := s.stall.asleep()
	if asleep < l.Blocked {
		return Healthy, ""
	}
	if o.LockOwner != 0 && !o.SelfOwned {
		return LockVictim, fmt.Sprintf("asleep for %s, waiting for a lock that worker %d owns", ms(asleep), o.LockOwner)
	}
	if o.Starting && asleep < l.Young {
		return Healthy, "" // a new one would only begin the same wait again
	}
	return Blocked, fmt.Sprintf("asleep for %s outside of its event wait, in %s", ms(asleep), s.waiting)
}
