package drill

import (
	"context"
	"sync"
	"time"
)

// shot is one probe: when it was sent, when it ended (zero while it waits), and
// whether it was answered with 200 in time.
type shot struct {
	sent, ended time.Time
	ok          bool
	cut         bool // refused, cut off or answered otherwise, not just late
}

// prober sends the healthy request at a fixed rate over fresh connections,
// whether or not earlier ones were answered.
type prober struct {
	cancel context.CancelFunc // ends sending and waiting
	quit   context.CancelFunc // ends sending
	wg     sync.WaitGroup

	mu    sync.Mutex
	shots []shot
}

// mostWaiting bounds the probes that wait for an answer at the same time.
const mostWaiting = 2000

// startProbes begins to probe.
func (l *lab) startProbes(ctx context.Context, rate int, patience time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	sending, quit := context.WithCancel(ctx)
	p := &prober{cancel: cancel, quit: quit}
	l.probing = p
	data := wire(&l.c.Healthy, 1)
	slots := make(chan struct{}, mostWaiting)
	l.spawn(&p.wg, func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for {
			select {
			case <-sending.Done():
				return
			case <-tick.C:
			}
			slots <- struct{}{}
			l.spawn(&p.wg, func() {
				defer func() { <-slots }()
				p.shoot(ctx, l.vars.Port, data, patience)
			})
		}
	})
}

func (p *prober) shoot(ctx context.Context, port int, data []byte, patience time.Duration) {
	var c call
	defer c.close()
	n := p.begin(time.Now())
	status := c.send(ctx, port, data, patience)
	if ctx.Err() != nil && status != 200 {
		return // stays open: nobody knows how it would have ended
	}
	p.end(n, shot{ended: time.Now(), ok: status == 200, cut: status != 200 && !c.late})
}

func (p *prober) begin(t time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shots = append(p.shots, shot{sent: t})
	return len(p.shots) - 1
}

func (p *prober) end(n int, s shot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.sent = p.shots[n].sent
	p.shots[n] = s
}

// finish ends the probing once the probes on their way were answered or given
// up.
func (p *prober) finish() {
	p.quit()
	p.wg.Wait()
}

// stop ends the probing at once; a probe that is still waiting is not counted.
// It may be called twice.
func (p *prober) stop() {
	p.cancel()
	p.wg.Wait()
}

// seen returns the probes so far, those on their way included.
func (p *prober) seen() []shot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]shot(nil), p.shots...)
}
