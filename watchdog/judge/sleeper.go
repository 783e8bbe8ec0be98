package judge

import (
	"fmt"
	"time"
)

// sleeper watches for a progress word that moves although the loop does not
// turn, of a worker that sleeps: a poll with short sleeps that updates the
// cached time itself, to see when to give up. Proof is that looks see it
// asleep elsewhere, and no entry into the event wait.
type sleeper struct {
	wall     time.Duration // that looks cover which saw it asleep elsewhere
	counted  time.Duration // of that, since counting began
	lastLook time.Duration
	looks    int
	request  uint64
	waits    uint64 // entries into the event wait when counting began
	counting bool
	denied   time.Duration // Now, when counting last showed a turn; 0: never
}

const (
	leastNap = 300 * time.Millisecond // asleep elsewhere, before turns are counted
	// Who sleeps a moment in each turn, such as in a library that blocks, does
	// so again soon.
	sleeperAgain = 5 * time.Second
)

// doubtful says that turns must be counted to tell.
func (z *sleeper) doubtful(now time.Duration) bool {
	return z.looks >= leastLooks && z.wall >= leastNap && (z.denied == 0 || now-z.denied >= sleeperAgain)
}

func (z *sleeper) proven(l Limits) bool { return z.counted >= l.Blocked }

// nap judges a worker whose word moves although it was never seen to turn its
// loop, but asleep.
func (s *State) nap(o Observation, l Limits) (v Verdict, reason string) {
	z := &s.sleeper
	turned := z.counting && o.Counting && o.EventWaits != z.waits
	another := o.Request != 0 && z.request != 0 && o.Request != z.request
	if o.InWait || o.Stopped || o.Starting || turned || another {
		denied := z.denied
		if turned {
			denied = o.Now
		}
		*z = sleeper{denied: denied, request: o.Request}
		return Healthy, ""
	}
	if o.Request != 0 {
		z.request = o.Request
	}
	if o.Weight == 0 {
		z.look(o)
	}
	if !z.proven(l) {
		return Healthy, ""
	}
	return Blocked, fmt.Sprintf("asleep for %s outside of its event wait, in %s; the clock that it updates itself proves nothing", ms(z.wall), s.waiting)
}

func (z *sleeper) look(o Observation) {
	gap := min(o.Now-z.lastLook, longestGap)
	seen := z.lastLook > 0
	z.lastLook = o.Now
	if o.Asleep {
		z.looks++
		if seen {
			z.wall += gap
			if z.counting {
				z.counted += gap
			}
		}
	}
	if o.Counting && !z.counting {
		z.counting, z.waits, z.counted = true, o.EventWaits, 0
	}
}
