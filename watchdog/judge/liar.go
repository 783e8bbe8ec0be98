package judge

import (
	"fmt"
	"time"
)

// clock watches for a progress word that moves although the loop does not
// turn: code that updates the cached time in a loop of its own. Proof is one
// handler and one request in every sample, and no entry into the event wait.
type clock struct {
	activity uint64
	request  uint64
	still    time.Duration // CPU time, by samples, with the same handler in each
	cpuFrom  time.Duration
	samples  int
	waits    uint64        // entries into the event wait when counting began
	counted  time.Duration // CPU time, by samples, since counting began
	counting bool
	proven   bool // it is a liar, until something changes
	reason   string
}

// liar judges a worker whose word moves.
func (s *State) liar(o Observation, l Limits) (Verdict, string) {
	c := &s.clock
	if o.Weight == 0 || o.Activity == 0 {
		if o.InWait || o.Stopped {
			*c = clock{}
		}
		if c.proven {
			return Runaway, c.reason // a look tells nothing new
		}
		return Healthy, ""
	}
	same := o.Activity == c.activity && (o.Request == c.request || o.Request == 0) && !o.InWait
	if !same || (o.Counting && c.counting && o.EventWaits != c.waits) {
		*c = clock{activity: o.Activity, request: o.Request, cpuFrom: o.CPUTime, waits: o.EventWaits, counting: o.Counting}
		return Healthy, ""
	}
	c.still += o.Weight
	c.samples++
	if o.Counting && !c.counting {
		c.counting, c.waits, c.counted = true, o.EventWaits, 0
	} else if c.counting {
		c.counted += o.Weight
	}
	cpu := min(c.counted, o.CPUTime-c.cpuFrom)
	if o.Starting || cpu < l.Runaway || c.samples < leastSamples {
		return Healthy, ""
	}
	c.proven = true
	c.reason = fmt.Sprintf("%s of CPU in one handler, over %d samples, and never in its event wait; the clock that it updates itself proves nothing",
		ms(c.still), c.samples)
	return Runaway, c.reason
}
