package drill

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// nightRun is a running night: its backends and what was seen.
type nightRun struct {
	l        *lab
	ctx      context.Context
	backends []*nightBackend

	mu    sync.Mutex
	facts nightFacts
}

// nightFacts is what the judge of a night looks at.
type nightFacts struct {
	statuses    map[int]int        // of the requests that were noted; 0: no answer in time
	shots       []shot             // of the probes, from the trigger on
	metrics     map[string]float64 // of the balancer, for the upstream, without prefix
	requests    []int              // at each backend, once the first lie was told
	connections []int              // most in any second, at each backend
	window      time.Duration      // in which the noted requests were sent
	signals     map[string]bool    // kinds that the agent told; nil without an agent
	problem     error
}

// startNight starts the backends of a night.
func (l *lab) startNight(ctx context.Context) error {
	l.night = &nightRun{l: l, ctx: ctx, facts: nightFacts{statuses: map[int]int{}}}
	for i := range nightPeers {
		b := &nightBackend{addr: fmt.Sprintf("127.0.0.1:%d", l.vars.Port1+i), takes: l.sc.night.takes, slots: l.sc.night.slots}
		if err := b.start(); err != nil {
			return err
		}
		l.night.backends = append(l.night.backends, b)
	}
	return nil
}

func (n *nightRun) stop() {
	for _, b := range n.backends {
		b.stop()
	}
}

// every calls f at a fixed rate, each time in a goroutine of its own, until the
// night is over, and waits for all of them.
func (n *nightRun) every(d time.Duration, f func()) {
	var wg sync.WaitGroup
	n.everyWait(d, func() { n.l.spawn(&wg, f) })
	wg.Wait()
}

// everyWait calls f at a fixed rate. What a busy machine made it miss is made
// up for, so that the rate is true.
func (n *nightRun) everyWait(d time.Duration, f func()) {
	begun := time.Now()
	for i := 0; ; i++ {
		next := begun.Add(time.Duration(i) * d)
		if next.Sub(begun) > n.l.c.Prove.watch() {
			return
		}
		if wait := time.Until(next); wait > 0 && pause(n.ctx, wait) != nil {
			return
		}
		f()
	}
}

func (n *nightRun) ask(r *Request) int { return n.askWithin(r, 2*time.Second) }

func (n *nightRun) askWithin(r *Request, patience time.Duration) int {
	return ask(n.ctx, n.l.vars.Port, r, patience)
}

// note counts the status of a request.
func (n *nightRun) note(status int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.facts.statuses[status]++
}

func (n *nightRun) fail(err error) {
	if err != nil && n.facts.problem == nil {
		n.facts.problem = err
	}
}

// list is what the registry says: the first few peers.
func (n *nightRun) list(peers int) string {
	var out []string
	for _, b := range n.backends[:peers] {
		out = append(out, fmt.Sprintf("%q", b.addr))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// served forgets the requests of the warm-up, half a second after the first lie.
func (n *nightRun) served() {
	time.AfterFunc(500*time.Millisecond, func() {
		for _, b := range n.backends {
			b.forget()
		}
	})
}

// accepted forgets the connections of the warm-up.
func (n *nightRun) accepted() {
	for _, b := range n.backends {
		b.forget()
	}
}

// seen collects the facts of a night that is over.
func (n *nightRun) seen(shots []shot) *nightFacts {
	f := &n.facts
	for _, s := range shots {
		if s.sent.After(n.l.trigger) {
			f.shots = append(f.shots, s)
		}
	}
	for _, b := range n.backends {
		requests, connections := b.counts()
		f.requests, f.connections = append(f.requests, requests), append(f.connections, connections)
	}
	f.metrics, f.signals = n.scrape(), n.l.hostSays(n.ctx)
	return f
}

// scrape reads the balancer's metrics; a proxy without the library has none.
func (n *nightRun) scrape() map[string]float64 {
	out := map[string]float64{}
	web := http.Client{Timeout: 2 * time.Second}
	resp, err := web.Get(fmt.Sprintf("http://127.0.0.1:%d/admin/metrics", n.l.vars.Port))
	if err != nil {
		return out
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(line, `{upstream="shop"} `)
		name, ours := strings.CutPrefix(name, "spinguard_balancer_")
		var v float64
		if _, err := fmt.Sscan(value, &v); ok && ours && err == nil {
			out[name] = v
		}
	}
	return out
}
