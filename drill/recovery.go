package drill

import (
	"slices"
	"time"
)

// clean is how long all probes must succeed before a proxy counts as recovered.
const clean = 500 * time.Millisecond

// recoveredAt returns the end of the first successful probe, sent at or after
// from, behind which every probe sent within the next half second succeeded
// too. Later failures do not undo it: they are counted. ok is false as long as
// there is no such half second.
func recoveredAt(shots []shot, from time.Time) (at time.Time, ok bool) {
	sorted := slices.Clone(shots)
	slices.SortFunc(sorted, func(a, b shot) int { return a.sent.Compare(b.sent) })
	var start *shot
	for i := range sorted {
		s := &sorted[i]
		switch {
		case s.sent.Before(from):
		case s.ended.IsZero():
			return time.Time{}, false
		case !s.ok:
			start = nil
		case start == nil:
			start = s
		case s.sent.Sub(start.sent) >= clean:
			return start.ended, true
		}
	}
	return time.Time{}, false
}

// cutOff counts the probes that failed otherwise than by being late: a busy
// machine makes them late, but only the end of a worker cuts them off.
func cutOff(shots []shot) int {
	n := 0
	for _, s := range shots {
		if s.cut {
			n++
		}
	}
	return n
}

// count sums up the probes. recovered is zero where there was no recovery.
func count(shots []shot, recovered time.Time) Probe {
	var p Probe
	for _, s := range shots {
		if s.ended.IsZero() {
			continue // cut off by the end of the drill
		}
		p.Sent++
		if s.ok {
			p.OK++
			continue
		}
		p.Failed++
		if !recovered.IsZero() && s.sent.After(recovered) {
			p.FailedAfterRecovery++
		}
	}
	return p
}
