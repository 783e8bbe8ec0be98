// Package judge says what a worker is doing: (state, observation) -> (state,
// verdict, reason). It is pure: no clock, no I/O, no global. Time comes with
// the observations, so every rule is a table test.
//
// The words: a stall is CPU time (asleep: wall time) since the last progress.
// Progress is any one of these, because each alone misleads:
//
//   - the loop turned: the progress word moved;
//   - another request or another event handler is being worked on;
//   - the worker sleeps inside its event wait.
//
// The stall's clock is the CPU time that the kernel charged, as far as samples
// bear witness to it: some hypervisors charge stolen time to the thread, and
// then a pause is one sample, a loop is thirty.
package judge

import (
	"fmt"
	"time"
)

// Verdict is what the judge says of a worker.
type Verdict string

// The verdicts, from harmless to bad.
const (
	Healthy    Verdict = "healthy"
	Saturated  Verdict = "saturated"   // full CPU, progress continues
	Suspect    Verdict = "suspect"     // no progress for a while, not yet proof
	Spinning   Verdict = "spinning"    // the loop turns fast and gets nowhere
	LockVictim Verdict = "lock_victim" // waits for a lock that another worker owns
	Blocked    Verdict = "blocked"     // asleep outside of its event wait
	Runaway    Verdict = "runaway"     // on CPU, never back in its event loop
)

// Stuck says that the verdict means a worker that does not serve any more.
func (v Verdict) Stuck() bool {
	return v == Runaway || v == Blocked || v == LockVictim || v == Spinning
}

// Severity orders verdicts: the higher, the worse.
func (v Verdict) Severity() int {
	for i, w := range [...]Verdict{Healthy, Saturated, Suspect, Spinning, LockVictim, Blocked, Runaway} {
		if v == w {
			return i
		}
	}
	return 0
}

// Limits are the thresholds. Suspect, Runaway, Young and Turn are CPU time,
// Blocked and Window wall time.
type Limits struct {
	Suspect time.Duration
	Runaway time.Duration
	Blocked time.Duration
	Window  time.Duration // how long a worker must spin to be called spinning
	Young   time.Duration // what a starting worker may use before its first turn
	Turn    time.Duration // how long one turn may serve timers, without a request that ends
	Usual   time.Duration // the longest standstill of this proxy that ended by itself of late
}

// Observation is one thing seen of a worker: a sample of it on a CPU, or a
// look at it from outside. Zero means not known.
type Observation struct {
	Now        time.Duration // monotonic
	CPUTime    time.Duration // of the thread since its start
	Weight     time.Duration // CPU time that this sample stands for; 0: a look
	Voluntary  uint64        // voluntary context switches since its start
	Progress   uint64        // the progress word
	ProgressOK bool
	TurnFrom   time.Duration // by when the turn had begun that the word tells of, monotonic; 0: it does not tell
	InWait     bool          // in the system call in which its event loop waits

	Activity uint64 // identity of the event handler that runs (lower part of the native stack)
	Request  uint64 // identity of the request being worked on
	Motion   uint64 // changes whenever the client's connection moves on
	Unseen   bool   // a sample of which nobody looked at the stack: that it names no request tells nothing
	Picks    uint64 // sequence of the crumb: counts picks
	Proven   bool   // the crumb says that a picker runs, which takes microseconds
	// Condemned: and it runs on a version that another worker of the proxy is stuck on.
	Condemned bool

	Asleep     bool          // looks only: state S or D
	RunDelay   time.Duration // time without a CPU though ready to run, since its start
	Before     time.Duration // looks only: a moment before its clocks were read, monotonic
	Throttled  time.Duration // looks only: of its cgroup, by quota; 0 where not read
	Stopped    bool          // stopped, traced or frozen
	Waiting    string        // looks only: what it sleeps in, for the reason
	LockOwner  int           // pid in the word of the lock that it waits for
	SelfOwned  bool          // it waits for a lock that it holds itself
	Starting   bool          // has not finished its start-up
	EventWaits uint64        // entries into the event wait since counting began
	Syscalls   uint64        // entries into system calls that read no clock, since counting began
	Counting   bool          // EventWaits and Syscalls are being counted
}

// Decision is what the judge concludes from one observation.
type Decision struct {
	Verdict Verdict
	Reason  string        // one sentence with the numbers
	Stall   time.Duration // length of the current standstill, or of the spinning; 0 if none
	Ended   time.Duration // a standstill or a turn of this length ended with this observation
	Wall    time.Duration // wall time of the current standstill
	Seen    time.Duration // when a look first saw the current standstill; 0: none did
	Over    time.Duration // wall time of the one that ended
	Before  Verdict       // the verdict before this observation
	Close   bool          // wish: copy the windows with every sample
	Burst   bool          // wish: sample at the burst rate
	Count   bool          // wish: count the entries into the event wait
}

// Changed says that the verdict is not the one before.
func (d Decision) Changed() bool { return d.Verdict != d.Before }

// State is what the judge remembers of a worker. The zero value is a worker
// not yet seen.
type State struct {
	verdict Verdict
	reason  string
	seen    bool
	last    Observation

	runDelay time.Duration // by the last look
	waiting  string        // what it was last seen asleep in

	turn    turn
	stall   stall
	window  window
	clock   clock
	sleeper sleeper
}

// Verdict returns the current verdict.
func (s State) Verdict() Verdict {
	if s.verdict == "" {
		return Healthy
	}
	return s.verdict
}

// Judge takes in one observation.
func Judge(s State, o Observation, l Limits) (State, Decision) {
	d := Decision{Before: s.Verdict()}
	if !s.seen {
		s.seen = true
		s.restart(o)
		if o.Starting {
			// It has not turned its loop since its birth, seen or not.
			s.stall.cpuFrom, s.stall.sampled = 0, o.CPUTime
		}
		s.turn.timers.restart(o)
		s.window.restart(o)
	}
	if o.RunDelay > 0 {
		s.runDelay = o.RunDelay
	}
	if o.Waiting != "" {
		s.waiting = o.Waiting
	}
	stood := o.Now - s.stall.from
	ended := max(s.progress(o, l), s.turn.ended)
	s.backdate(o)
	s.window.add(o)
	s.verdict, s.reason = s.decide(o, l)
	if s.verdict == Healthy || s.verdict == Saturated {
		d.Ended, d.Over = ended, max(stood, ended)
	}
	s.last = o
	s.wish(&d, l)
	d.Verdict, d.Reason, d.Stall = s.verdict, s.reason, s.stall.length()
	d.Wall, d.Seen = o.Now-s.stall.from, s.stall.seenAt
	if s.clock.proven {
		d.Stall = max(d.Stall, s.clock.still)
	}
	if s.sleeper.proven(l) {
		d.Stall = max(d.Stall, s.sleeper.wall)
	}
	if s.verdict == Spinning {
		d.Stall = o.Now - s.window.spins()
	}
	return s, d
}

// decide applies the rules in order of the strength of their proof.
func (s *State) decide(o Observation, l Limits) (Verdict, string) {
	nap, why := s.nap(o, l)
	if o.Stopped {
		return Healthy, "stopped from outside (signal, debugger or freezer): not its own doing"
	}
	if v, reason := s.onCPU(o, l); v != Healthy {
		return v, reason
	}
	if v, reason := s.offCPU(o, l); v != Healthy {
		return v, reason
	}
	if v, reason := s.liar(o, l); v != Healthy {
		return v, reason
	}
	if nap != Healthy {
		return nap, why
	}
	if v, reason := s.window.verdict(o, l); v != Healthy {
		return v, reason
	}
	if o.Starting && s.stall.length() > l.Suspect {
		return Healthy, fmt.Sprintf("starting: %s without a first turn, allowed are %s", ms(s.stall.length()), ms(l.Young))
	}
	return Healthy, "makes progress"
}

// wish says how closely the worker must be watched to decide the next step.
func (s *State) wish(d *Decision, l Limits) {
	bad := s.verdict != Healthy && s.verdict != Saturated
	// A burst costs the worker some percent, which a handler of 100 ms need not
	// pay, and which would make one of nearly 300 ms look longer.
	near := s.verdict.Stuck() || max(s.stall.length(), s.clock.still) >= 2*l.Suspect
	d.Burst = bad && near && s.verdict != Blocked && s.verdict != Spinning
	d.Count = s.clock.still >= l.Suspect || s.window.doubtful() || s.verdict == Spinning || s.sleeper.doubtful(s.last.Now)
	d.Close = bad || d.Count || s.window.busy() || s.window.one.lingers(s.last.Now)
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
