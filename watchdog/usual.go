package watchdog

import (
	"time"

	"github.com/spinguard/spinguard/watchdog/judge"
)

// usual is the longest standstill of a proxy's handlers that ended by itself.
type usual struct {
	longest time.Duration // CPU time
	at      time.Duration // monotonic, when one that long was last seen
}

// What was seen is believed for so long.
const usualFor = 10 * time.Minute

// learn takes in a standstill that ended. Only those on a CPU count: what
// sleeps, or waits for a lock, says nothing of how long handlers compute.
func (u *usual) learn(d judge.Decision, now time.Duration) {
	if d.Before != judge.Suspect && d.Before != judge.Runaway {
		return
	}
	if d.Ended >= u.longest || now-u.at > usualFor {
		u.longest, u.at = d.Ended, now
	}
}

func (u *usual) length(now time.Duration) time.Duration {
	if now-u.at > usualFor {
		return 0
	}
	return u.longest
}
