package watchdog

import (
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
)

// losses are samples that the sampler lost before anyone knew of which worker
// they were. They are counted over all of them.
type losses struct {
	ring, unreadable uint64
}

// losses reads the totals as they are now.
func (a *Agent) losses() losses {
	if a.sampler != nil {
		if c, err := a.sampler.Counters(); err == nil {
			a.counters = c
		}
	}
	return losses{ring: a.counters.LostRing, unreadable: a.unreadable}
}

// lossesSince returns what was lost since the totals were those.
func (a *Agent) lossesSince(then losses) losses {
	now := a.losses()
	return losses{ring: now.ring - then.ring, unreadable: now.unreadable - then.unreadable}
}

func (l losses) count(b *profiler.Builder) {
	b.Lost("ring full", l.ring)
	b.Lost("unreadable record", l.unreadable)
	if l.ring+l.unreadable > 0 {
		b.Comment("scope_of_losses", "ring full and unreadable record: of all watched workers, not only of those shown")
	}
}

// account says how good a profile is, for incident.json. It adds up: taken is
// shown plus all that was lost.
func account(b *profiler.Builder, rate int) incident.Samples {
	taken, shown, _, truncated := b.Counts()
	unnamed, _ := b.Unnamed()
	s := incident.Samples{
		Taken: int64(taken), Shown: int64(shown), Truncated: int64(truncated), Unnamed: int64(unnamed),
		Lost: map[string]int64{}, RateHz: rate,
	}
	for reason, n := range b.LostBy() {
		s.Lost[reason] = int64(n)
	}
	return s
}
