package watchdog

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/web/api"
)

// A wall clock that moves by more than jumpMin against the kernel's own is
// said to have been set; what NTP slews is less. Both clocks are read within
// readWithin, or the comparison is left for the next time.
const (
	jumpMin    = time.Second
	readWithin = 10 * time.Millisecond
)

// jumps notices that somebody set the wall clock.
type jumps struct {
	offset time.Duration // of the wall clock from boot time, when last read
	apart  time.Duration // of the wall clock from the monotonic one then
	known  bool
}

// step returns by how much the wall clock was set since the last step; 0: it
// was not.
func (j *jumps) step(c clock) time.Duration {
	// Whoever sets the wall clock moves it against the monotonic one too, which
	// costs no system call to read. That one stands still while the host sleeps.
	apart := time.Duration(c.wall().UnixNano()) - c.mono()
	if j.known && (apart-j.apart).Abs() < readWithin {
		return 0
	}
	boot := c.boot()
	wall := c.wall().UnixNano()
	if c.boot()-boot > readWithin {
		return 0 // the agent had to wait between the clocks
	}
	moved := time.Duration(wall) - boot - j.offset
	first := !j.known
	j.offset, j.apart, j.known = j.offset+moved, apart, true
	if first || moved.Abs() < jumpMin {
		return 0
	}
	return moved
}

// now is the time in an incident: it goes on from its beginning by the
// monotonic clock, so that an incident is as long as it was.
func (a *Agent) now(e *episode) time.Time {
	return e.inc.Began.Add(a.clock.mono() - e.from)
}

// clockSet moves the ends of quarantines with a wall clock that was set:
// workers compare them with it, and each shall last as long as it was meant to.
func (a *Agent) clockSet() {
	d := a.jumps.step(a.clock)
	if d == 0 {
		return
	}
	text := fmt.Sprintf("the clock of this host was set by %s", d.Round(time.Millisecond))
	a.log.Warn("the wall clock was set; quarantines end as much later or earlier", zap.Duration("by", d))
	a.feed.Publish(api.Event{At: a.clock.wall(), Kind: "clock", Text: text})
	for _, e := range a.episodes {
		e.note(a.now(e), "note", text+"; the times of this incident go on from its beginning")
	}
	for _, in := range a.instances {
		if in.ledger == nil {
			continue
		}
		if err := in.ledger.Shift(d, a.clock.wall()); err != nil {
			a.log.Error("quarantines end at the wrong time: the clock was set, and the ledger could not be changed", zap.String("proxy", in.Name), zap.Error(err))
		}
		in.readAt = 0
	}
	a.shiftHolds(d)
}

func (a *Agent) shiftHolds(d time.Duration) {
	for _, h := range a.holds {
		h.Since, h.Until = h.Since.Add(d), h.Until.Add(d)
	}
	if len(a.holds) > 0 {
		a.logSave()
	}
}
