package judge

import "time"

// unseen is the part of a turn that was over when the turn was first seen. The
// timer meets a worker every 20 ms, on a crowded CPU more seldom, so a stall
// has used CPU time before anybody knows of it. Where the word itself says when
// the turn began, a lower bound of that can be told: the wall time since then,
// less all the time that the worker waited for a CPU since it was last asleep.
type unseen struct {
	turn  time.Duration // by when the turn had begun; 0: nothing can be told
	least time.Duration // CPUTime when it was last seen in its event wait
	delay time.Duration // RunDelay then, or before
	given time.Duration // what the standstill was lengthened by
}

// backdate lets the standstill begin where its turn began, as far as that is
// proven: by a look, and only if the worker slept when it was seen last before.
func (s *State) backdate(o Observation, delayBefore time.Duration) {
	u := &s.stall.unseen
	s.period = max(s.period, o.Weight)
	if s.stall.from == o.Now && s.stall.samples == 0 {
		*u = unseen{} // it begins with this observation
		if s.last.InWait && !o.InWait && !o.Stopped && o.TurnFrom > 0 && delayBefore > 0 {
			*u = unseen{turn: o.TurnFrom, least: s.last.CPUTime, delay: delayBefore}
		}
	}
	if u.turn > 0 && o.Weight == 0 && o.RunDelay > 0 {
		s.stall.extend(o, (o.Before-u.turn)-(o.RunDelay-u.delay), believed*s.period)
	}
}

// extend moves the begin of a standstill back to where it has used so much CPU
// time by now. No more is believed than between two samples.
func (s *stall) extend(o Observation, cpu, most time.Duration) {
	u := &s.unseen
	more := min(s.cpuFrom-max(o.CPUTime-cpu, u.least), most-u.given)
	if more <= 0 {
		return
	}
	u.given += more
	s.cpuFrom -= more
	s.cpu += more
	s.sampled += more
	s.from = min(s.from, u.turn)
}
