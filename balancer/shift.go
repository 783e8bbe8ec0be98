package balancer

import "time"

// Shift moves the quarantines that were in force before the wall clock was set
// by d. now is what it shows since. Workers compare the ends with that clock.
func (l *Ledger) Shift(d time.Duration, now time.Time) error {
	return l.change(now.Add(-d), func(entries []Entry) ([]Entry, error) {
		moved := make([]Entry, len(entries))
		for i, e := range entries {
			moved[i] = e.moved(d)
		}
		return moved, nil
	})
}

// skew is how far in the future a quarantine may have begun: another program
// wrote it by a clock that it read later.
const skew = time.Second

// Rebase has quarantines that began in the future begin now: the clock was set
// back while nobody was there to move them, and they would last too long.
func (l *Ledger) Rebase(now time.Time) error {
	return l.change(now, func(entries []Entry) ([]Entry, error) {
		moved := make([]Entry, len(entries))
		for i, e := range entries {
			if ahead := e.Since.Sub(now); ahead > skew {
				e = e.moved(-ahead)
			}
			moved[i] = e
		}
		return moved, nil
	})
}

func (e Entry) moved(d time.Duration) Entry {
	e.Since, e.Until = e.Since.Add(d), e.Until.Add(d)
	return e
}
