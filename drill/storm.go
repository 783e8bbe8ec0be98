package drill

import (
	"context"
	"sync"
	"time"
)

// stormRate is how often a second a storm repeats the trigger.
const stormRate = 10

// storm sends the requests of the trigger again and again, whether or not
// they are answered.
type storm struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sent   int // valid after wait
}

func (l *lab) startStorm(ctx context.Context, d time.Duration) *storm {
	ctx, cancel := context.WithTimeout(ctx, d)
	s := &storm{cancel: cancel}
	l.spawn(&s.wg, func() {
		tick := time.NewTicker(time.Second / stormRate)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			s.sent++
			l.spawn(&s.wg, func() { l.fire(ctx) })
		}
	})
	return s
}

func (s *storm) stop() {
	s.cancel()
	s.wg.Wait()
}
