package drill

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

var (
	nightMalformed = nightOf(night{fault: malformed, check: noneDown},
		"One client sends requests for which every backend closes the connection. Its requests are refused, no peer goes "+
			"down, and nobody else sees an error.", "", 50)
	nightEmpty = nightOf(night{fault: publishFew(0), check: allServe},
		"The registry publishes an empty list. It is refused, and the last good one goes on serving.", "", 50)
	nightHalved = nightOf(night{takes: 20 * time.Millisecond, slots: 1, fault: publishFew(2), check: allServe},
		"The registry publishes two of five peers, which could not carry the load. The list is refused.", "", 160)
	nightRetries = nightOf(night{takes: 40 * time.Millisecond, slots: 1, fault: storming, check: goodput},
		"Four times as many requests come as the backends can serve. What they can serve is served in time, the rest is "+
			"told at once to come back later.", "rate = 118, burst = 60, eject_after = false,", 1)
	nightFlapping = nightOf(night{fault: flapping, check: damped},
		"One of five peers comes and goes every 200 ms. It stays out longer each time, and nobody sees an error.",
		"eject_time = 0.25, slow_start = 0.25, eject_window = 2,", 100)
	nightCold = nightOf(night{takes: 300 * time.Millisecond, fault: coldCache, check: fewConnections},
		"The caches behind the proxy are cold, answers take 300 ms instead of 3. Without a bound each peer would get many "+
			"times the connections while it is weakest.", fmt.Sprintf("max_new = %d, keepalive = 8, tries = 1,", coldBound), 1)
)

// malformed sends the bad request twenty times a second.
func malformed(n *nightRun) {
	bad := &Request{Path: "/shop/bad", Headers: map[string]string{"X-Client": "bad"}}
	n.every(50*time.Millisecond, func() { n.note(n.ask(bad)) })
}

func noneDown(f *nightFacts) []string {
	broken := f.probes()
	if out := f.metric("ejections_total"); out > 0 {
		broken = append(broken, fmt.Sprintf("%.0f peers went down for one client", out))
	}
	return broken
}

// publishFew tells the registry's lie twice a second.
func publishFew(peers int) func(*nightRun) {
	return func(n *nightRun) {
		r := &Request{Method: http.MethodPut, Path: "/admin/upstreams/shop", Body: n.list(peers)}
		n.served()
		n.every(500*time.Millisecond, func() { n.note(n.ask(r)) })
	}
}

func allServe(f *nightFacts) []string {
	broken := f.probes()
	if f.statuses[http.StatusOK] > 0 {
		broken = append(broken, fmt.Sprintf("the lists of the registry were taken: %v", f.statuses))
	}
	for i, n := range f.requests {
		if n == 0 {
			broken = append(broken, fmt.Sprintf("peer %d was forgotten: it got no request any more", i+1))
		}
	}
	return broken
}

// capacity is what the backends of the retry storm can serve a second.
const capacity = nightPeers * 25

// storming sends four times the capacity. Each client waits for two seconds: a
// burst that was let in takes the backends half a second, the rest is for a
// busy machine. Without admission all wait for three and more.
//
// A storm that the drill itself could not send in time, since others had the
// processor, measures the machine: it is repeated, and the one counts that was
// sent best.
func storming(n *nightRun) {
	least := time.Hour
	for range stormRounds {
		statuses, late := n.stormOnce()
		if late < least {
			least, n.facts.statuses = late, statuses
		}
		if least < stormLate || n.ctx.Err() != nil {
			break
		}
	}
	n.facts.window = n.l.c.Prove.watch() - time.Second
}

const (
	stormRounds = 4
	stormLate   = 50 * time.Millisecond
)

// stormOnce returns what became of the requests, and the latest of them.
func (n *nightRun) stormOnce() (statuses map[int]int, late time.Duration) {
	r := &Request{Path: "/shop/storm", Headers: map[string]string{"X-Client": "storm"}}
	begun, statuses, sent := time.Now(), map[int]int{}, 0
	const each = time.Second / (4 * capacity)
	var mu sync.Mutex
	var wg sync.WaitGroup
	n.everyWait(each, func() {
		at := time.Since(begun)
		late = max(late, at-time.Duration(sent)*each)
		sent++
		n.l.spawn(&wg, func() {
			status := n.askWithin(r, 2*time.Second)
			mu.Lock()
			defer mu.Unlock()
			if at > time.Second { // until then the queues fill
				statuses[status]++
			}
		})
	})
	wg.Wait()
	return statuses, late
}

func goodput(f *nightFacts) []string {
	var broken []string
	good := float64(f.statuses[http.StatusOK]) / f.window.Seconds()
	if good < 0.9*capacity {
		broken = append(broken, fmt.Sprintf("%.0f good answers a second, less than 90 %% of the capacity of %d", good, capacity))
	}
	if late := f.statuses[0]; late > f.total()/50 {
		broken = append(broken, fmt.Sprintf("%d of %d requests waited in vain: %v", late, f.total(), f.statuses))
	}
	return broken
}

// flapping takes the last peer away and brings it back.
func flapping(n *nightRun) {
	b, down := n.backends[nightPeers-1], false
	n.everyWait(200*time.Millisecond, func() {
		if down = !down; down {
			b.stop()
		} else {
			n.fail(b.start())
		}
	})
	if down {
		n.fail(b.start())
	}
}

func damped(f *nightFacts) []string {
	broken := f.probes()
	// Out for 0.25, 0.5, 1, 2 and 4 s: five times in as many seconds.
	if times := f.metric("ejections_total"); times > 6 {
		broken = append(broken, fmt.Sprintf("the peer went out %.0f times", times))
	}
	return broken
}

// coldBound is how many new connections a second a peer may get.
const coldBound = 4

// coldCache asks for a page with twenty parts, five times a second.
func coldCache(n *nightRun) {
	r := &Request{Path: "/shop/part", Headers: map[string]string{"X-Client": "crowd"}}
	n.accepted()
	var parts sync.WaitGroup
	n.everyWait(200*time.Millisecond, func() {
		for range 20 {
			n.l.spawn(&parts, func() { n.note(n.ask(r)) })
		}
	})
	parts.Wait()
}

func fewConnections(f *nightFacts) []string {
	var broken []string
	for i, most := range f.connections {
		// Over the bound there is a tenth, at least one; one more for the clocks.
		if most > coldBound+2 {
			broken = append(broken, fmt.Sprintf("peer %d got %d new connections in a second, bound %d", i+1, most, coldBound))
		}
	}
	if n := f.statuses[http.StatusOK]; n < 50 {
		broken = append(broken, fmt.Sprintf("only %d requests were served", n))
	}
	return broken
}
