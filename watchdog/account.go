package watchdog

import (
	"fmt"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
)

// losses are samples that never reached the loop: of one worker those that
// found the ring full, and over all workers those that could not be decoded,
// since nobody knows whose they were.
type losses struct {
	ring, unreadable uint64
}

// readCounters reads the sampler's totals. One that can't be asked keeps them.
func (a *Agent) readCounters() {
	if a.sampler == nil {
		return
	}
	if c, err := a.sampler.Counters(); err == nil {
		a.counters = c
	}
}

// readLostRing does so for the one that scans must know.
func (a *Agent) readLostRing() {
	if a.sampler == nil {
		return
	}
	if n, err := a.sampler.LostRing(); err == nil {
		a.counters.LostRing = n
	}
}

// losses reads the totals of a worker as they are now.
func (a *Agent) losses(w *worker) losses {
	l := losses{unreadable: a.unreadable}
	if a.sampler != nil {
		// A thread that can't be asked is gone: then the last word on it holds.
		if n, err := a.sampler.Lost(w.TID); err == nil && n > w.ringLost {
			a.recorder.Lost(w.recorded(), a.clock.mono(), "ring full", n-w.ringLost)
			w.ringLost = n
		}
	}
	l.ring = w.ringLost
	return l
}

// lossesSince returns what was lost of a worker since it was suspected.
func (a *Agent) lossesSince(w *worker) losses {
	now := a.losses(w)
	return losses{ring: now.ring - w.lostAt.ring, unreadable: now.unreadable - w.lostAt.unreadable}
}

// count adds the losses of one worker to a profile of several.
func (l losses) count(b *profiler.Builder, tid int) {
	b.Lost("ring full", l.ring)
	if l.ring > 0 {
		b.Comment(fmt.Sprintf("lost_ring_full_of_%d", tid), fmt.Sprint(l.ring))
	}
}

// countUnreadable adds those that may be of any worker.
func (l losses) countUnreadable(b *profiler.Builder) {
	b.Lost("unreadable record", l.unreadable)
	if l.unreadable > 0 {
		b.Comment("scope_of_losses", "unreadable record: of all watched workers, not only of those shown")
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
