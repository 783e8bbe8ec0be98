package signals

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Connects is what became of the connects of one worker's process to one peer
// since they are counted, as the kernel saw them.
type Connects struct {
	PID  int
	Peer netip.AddrPort
	Tally
}

// Tally counts connects.
type Tally struct {
	Begun, Established                      uint64
	Refused, TimedOut, Unreachable, GivenUp uint64 // failed; GivenUp: the process closed the socket before there was an answer
	Closed                                  uint64 // of those established
	Reset, Lost                             uint64 // of those closed; Lost: no answer any more
}

// PeerConnects is the sum over the processes of a proxy, since the collector
// was made. Peers beyond a bound are one, the zero address.
type PeerConnects struct {
	Proxy string
	Peer  netip.AddrPort
	Tally
}

// forgetAfter is how long an unused peer keeps its place if others want one.
const forgetAfter = time.Hour

// failedLeast is how many connects to one peer must fail within a round.
const failedLeast = 5

func (t Tally) failed() uint64 { return t.Refused + t.TimedOut + t.Unreachable + t.GivenUp }

// plus adds what b has and a (an earlier reading of b) has not.
func (t Tally) plus(b, a Tally) Tally {
	add := func(sum *uint64, b, a uint64) { *sum += b - min(a, b) }
	add(&t.Begun, b.Begun, a.Begun)
	add(&t.Established, b.Established, a.Established)
	add(&t.Refused, b.Refused, a.Refused)
	add(&t.TimedOut, b.TimedOut, a.TimedOut)
	add(&t.Unreachable, b.Unreachable, a.Unreachable)
	add(&t.GivenUp, b.GivenUp, a.GivenUp)
	add(&t.Closed, b.Closed, a.Closed)
	add(&t.Reset, b.Reset, a.Reset)
	add(&t.Lost, b.Lost, a.Lost)
	return t
}

type ownPeer struct {
	pid  int
	peer netip.AddrPort
}

type proxyPeer struct {
	proxy string
	peer  netip.AddrPort
}

// TakeConnects adds to a report of Collect what the kernel counted of connects.
// fresh says that counting has just begun anew.
func (c *Collector) TakeConnects(r *Report, now time.Time, workers []Worker, list []Connects, fresh bool) {
	if fresh {
		clear(c.connects)
	}
	proxies := map[int]string{}
	for _, w := range workers {
		proxies[w.PID] = w.Proxy
	}
	round, before := map[proxyPeer]Tally{}, c.connects
	c.connects = map[ownPeer]Tally{}
	for _, x := range list {
		own := ownPeer{x.PID, x.Peer}
		c.connects[own] = x.Tally
		if proxy, ok := proxies[x.PID]; ok {
			key := c.bounded(now, proxyPeer{proxy, x.Peer})
			round[key] = round[key].plus(x.Tally, before[own])
		}
	}
	for key, t := range round {
		c.judgeConnects(r, now, key, t)
	}
	r.Connects = c.peerConnects()
	slices.SortFunc(r.Signals, compare)
}

// total is what is remembered of the connects of one proxy to one peer.
type total struct {
	Tally
	rate peer // connects begun in a round
	used time.Time
}

// bounded returns the key under which a peer is remembered: its own, or one for
// all that find no place.
func (c *Collector) bounded(now time.Time, key proxyPeer) proxyPeer {
	if c.totals[key] != nil {
		return key
	}
	if len(c.totals) >= peersMost {
		for k, t := range c.totals {
			if now.Sub(t.used) > forgetAfter {
				delete(c.totals, k)
			}
		}
	}
	if len(c.totals) >= peersMost {
		key.peer = netip.AddrPort{}
	}
	return key
}

func (c *Collector) judgeConnects(r *Report, now time.Time, key proxyPeer, t Tally) {
	sum := c.totals[key]
	if sum == nil {
		sum = &total{rate: peer{usual: float64(t.Begun)}, used: now}
		c.totals[key] = sum
	}
	if t != (Tally{}) {
		sum.Tally, sum.used = sum.plus(t, Tally{}), now
	}
	if n := t.failed() + t.Lost; n >= failedLeast {
		text := fmt.Sprintf("%d of %d connects to %s failed: %s", t.failed(), max(t.Begun, t.failed()), key.name(), t.reasons())
		r.suspect(text)
		c.raise(r, "failed "+key.proxy+key.name(), Signal{At: now, Kind: "connects", Proxy: key.proxy, Text: text})
	}
	if sum.rate.grown(float64(t.Begun), 1) {
		text := fmt.Sprintf("%d connects to %s within %s, usual are %.0f", t.Begun, key.name(), Every, sum.rate.usual)
		r.suspect(text)
		c.raise(r, "rate "+key.proxy+key.name(), Signal{At: now, Kind: "connections", Proxy: key.proxy, Text: text})
	}
	sum.rate.take(float64(t.Begun), 1)
}

func (k proxyPeer) name() string {
	if !k.peer.IsValid() {
		return "other peers"
	}
	return k.peer.String()
}

// reasons lists why connects failed, the most frequent first.
func (t Tally) reasons() string {
	type reason struct {
		n    uint64
		text string
	}
	list := []reason{
		{t.Refused, "refused"}, {t.TimedOut, "without an answer"}, {t.GivenUp, "given up by the proxy"},
		{t.Unreachable, "unreachable"}, {t.Lost, "lost when established"},
	}
	slices.SortStableFunc(list, func(a, b reason) int { return cmp.Compare(b.n, a.n) })
	var texts []string
	for _, x := range list {
		if x.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", x.n, x.text))
		}
	}
	return strings.Join(texts, ", ")
}

func (c *Collector) peerConnects() []PeerConnects {
	list := make([]PeerConnects, 0, len(c.totals))
	for key, t := range c.totals {
		list = append(list, PeerConnects{key.proxy, key.peer, t.Tally})
	}
	slices.SortFunc(list, func(a, b PeerConnects) int {
		return cmp.Or(cmp.Compare(a.Proxy, b.Proxy), a.Peer.Compare(b.Peer))
	})
	return list
}
