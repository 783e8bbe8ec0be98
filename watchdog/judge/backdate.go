package judge

import "time"

// mostUnseen bounds what is believed of a turn that no sample saw, beyond what
// the worker waited for a CPU meanwhile: a pause of the machine, charged by a
// hypervisor that hides it, looks the same.
const mostUnseen = 100 * time.Millisecond

// backdate lets a standstill begin where its turn began. The timer meets a
// worker every 20 ms, on a crowded CPU more seldom, so a turn has used CPU time
// before anybody knows of it. Where the word itself says when the turn began,
// that part can be told: since the observation before, which saw another turn,
// the worker had the CPU for some time and waited for it for some; its turn had
// the same share of the CPU. That errs by a time slice or so, mostly downwards,
// and the part is never more than was charged between the two observations.
func (s *State) backdate(o Observation) {
	if s.stall.from != o.Now || s.stall.samples > 0 || s.stall.given {
		return // it did not begin with this observation
	}
	before, now := s.last, o.Now
	if o.Weight == 0 {
		now = o.Before
	}
	if o.TurnFrom <= before.Now || o.InWait || o.Stopped || before.Stopped || before.RunDelay == 0 || o.RunDelay < before.RunDelay {
		return
	}
	had, waited := o.CPUTime-before.CPUTime, o.RunDelay-before.RunDelay
	if had <= 0 {
		return
	}
	share := float64(had) / float64(had+waited)
	unseen := time.Duration(share * float64(now-o.TurnFrom))
	s.stall.extend(min(unseen, had, mostUnseen+waited), o.TurnFrom)
}

// extend moves the begin of a standstill back by so much CPU time, to a moment.
func (s *stall) extend(cpu, from time.Duration) {
	if cpu <= 0 {
		return
	}
	s.given = true
	s.cpuFrom -= cpu
	s.cpu += cpu
	s.sampled += cpu
	s.from = min(s.from, from)
}
