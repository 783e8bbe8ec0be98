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
	from      time.Duration // Now of the last progress
	cpuFrom   time.Duration // CPUTime then
	sampled   time.Duration // CPU time that the samples since stand for
	samples   int
	wall      time.Duration // wall time that looks cover
	delayFrom time.Duration // RunDelay then
	delay     time.Duration // waited for a CPU since
	looks     int           // that saw it asleep outside of its wait
	seen      bool          // by a look
	seenAt    time.Duration // when first
	lastLook  time.Duration
	cpu       time.Duration // CPU time charged since
}

// length is the stall by its strictest clock: CPU time, or asleep the wall.
func (s stall) length() time.Duration {
	cpu := min(s.cpu, s.sampled)
	if s.samples < leastSamples {
		cpu = 0
	}
	return max(cpu, s.asleep())
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
	s.stall = stall{from: o.Now, cpuFrom: o.CPUTime, lastLook: o.Now, delayFrom: s.runDelay}
}

// progress moves the stall's clocks on. It returns the length of the
// standstill that this observation ends, 0 if it ends none.
func (s *State) progress(o Observation, l Limits) time.Duration {
	if s.moved(o, l) {
		ended := s.stall.length()
		s.restart(o)
		return ended
	}
	if o.Weight > 0 {
		s.stall.sampled += o.Weight
		s.stall.samples++
	}
	s.stall.cpu = max(s.stall.cpu, o.CPUTime-s.stall.cpuFrom)
	if o.Weight == 0 {
		s.look(o)
	}
	return 0
}

// moved says whether the observation is proof of progress.
func (s *State) moved(o Observation, l Limits) bool {
	wordMoved := o.ProgressOK && s.turn.wordOK && o.Progress != s.turn.word
	if o.ProgressOK {
		s.turn.word, s.turn.wordOK = o.Progress, true
	}
	requestEnded := s.turn.newRequest(o.Request) || s.turn.newPick(o.Picks)
	s.turn.measure(o, wordMoved)
	handlerEnded := s.turn.newHandler(o.Activity)
	if wordMoved || requestEnded || o.InWait || o.Stopped {
		s.turn.cpuFrom = o.CPUTime
		if !requestEnded {
			s.turn.seen = 0
		}
		return true
	}
	// Other handlers run within one turn, such as timers that fell due
	// together. That is progress, unless the turn never ends.
	return handlerEnded && o.CPUTime-s.turn.cpuFrom < l.Turn
}

// turn is what was seen within the current turn of the loop.
type turn struct {
	word    uint64
	wordOK  bool
	handler uint64
	picks   uint64
	cpuFrom time.Duration // CPUTime when the word moved or a request ended
	request [8]uint64     // requests seen
	seen    int

	begun   bool
	began   time.Duration // CPUTime when the word moved
	cpu     time.Duration // since then
	sampled time.Duration
	samples int
	ended   time.Duration // length of the turn that this observation ends
}

// measure follows how long the turn takes by the CPU clock, whatever it serves
// meanwhile. It notes the length of a turn that ends.
func (t *turn) measure(o Observation, wordMoved bool) {
	t.ended = 0
	if wordMoved || o.InWait || o.Stopped || !t.begun {
		if t.samples >= leastSamples {
			t.ended = min(t.cpu, t.sampled)
		}
		t.begun, t.began, t.cpu, t.sampled, t.samples = true, o.CPUTime, 0, 0, 0
		return
	}
	t.cpu = max(t.cpu, o.CPUTime-t.began)
	if o.Weight > 0 {
		t.sampled += o.Weight
		t.samples++
	}
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

// Where no crumb proves that a picker runs, a handler may just be long; and CPU
// time runs up to some 8 % fast on cores that are shared with others. So the
// threshold is this part of itself higher there.
const doubt = 12

// onCPU judges a worker that uses CPU and makes no progress.
func (s *State) onCPU(o Observation, l Limits) (Verdict, string) {
	cpu := min(s.stall.cpu, s.stall.sampled)
	if s.stall.samples < leastSamples {
		return Healthy, ""
	}
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
	if !o.Proven {
		runaway += runaway / doubt
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
	return Blocked, fmt.Sprintf("asleep for %s outside of its event wait, in %s", ms(asleep), s.waiting)
}
