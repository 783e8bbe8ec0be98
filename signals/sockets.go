package signals

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"
)

// peer is a remote address that the proxies' users connect to.
type peer struct {
	count float64
	usual float64 // slow mean
	seen  int
}

const (
	peersMost  = 256
	growthLow  = 50 // fewer connections are no trouble
	growthBy   = 3.0
	growthSeen = 6 // rounds until what is usual is known
	fullQueue  = 0.9
	shownQueue = 0.25
)

// collectSockets looks at listen queues, and at the connections that the users
// of the workers have to remote addresses. Other network namespaces than ours
// are not seen.
func (c *Collector) collectSockets(r *Report, now time.Time, workers []Worker) error {
	if len(workers) == 0 {
		return nil
	}
	users := map[uint32]bool{}
	for _, w := range workers {
		if uid, ok := ownerOf(filepath.Join(c.proc, fmt.Sprint(w.PID))); ok {
			users[uid] = true
		}
	}
	ports := map[uint16]bool{}
	var full []socket
	err := c.dump(1<<listen, func(s socket) {
		ports[s.local.Port()] = true
		if s.sent > 0 && float64(s.received) >= shownQueue*float64(s.sent) && s.received > 1 {
			full = append(full, s)
		}
	})
	if err != nil {
		return err
	}
	for _, s := range full {
		c.judgeQueue(r, now, workers, s)
	}
	counts := map[netip.AddrPort]int{}
	err = c.dump(1<<established|1<<synSent, func(s socket) {
		if !ports[s.local.Port()] && users[s.uid] && (len(counts) < 4096 || counts[s.remote] > 0) {
			counts[s.remote]++
		}
	})
	c.judgePeers(r, now, counts)
	return err
}

func (c *Collector) judgeQueue(r *Report, now time.Time, workers []Worker, s socket) {
	share := float64(s.received) / float64(s.sent)
	told := map[int]bool{}
	for _, w := range workers {
		if told[w.PID] || !c.holds(w.PID, s.inode) {
			continue
		}
		told[w.PID] = true
		r.Queues[w.PID] = max(r.Queues[w.PID], share)
		if share >= fullQueue {
			c.raise(r, fmt.Sprint("queue ", w.PID, s.local), Signal{At: now, Kind: "listen_queue", Proxy: w.Proxy,
				Text: fmt.Sprintf("worker %d (pid %d) does not accept: %d of %d connections wait at %s", w.Index, w.PID, s.received, s.sent, s.local)})
		}
	}
}

// judgePeers follows the connections to each remote address against their
// usual number, a mean over about a minute.
func (c *Collector) judgePeers(r *Report, now time.Time, counts map[netip.AddrPort]int) {
	for address, n := range counts {
		key := address.String()
		if c.peers[key] == nil && n >= growthLow/5 && len(c.peers) < peersMost {
			c.peers[key] = &peer{usual: float64(n)}
		}
	}
	for key, p := range c.peers {
		address, err := netip.ParseAddrPort(key)
		if err != nil {
			continue
		}
		p.count = float64(counts[address])
		p.seen++
		if p.seen > growthSeen && p.count >= growthLow && p.count > growthBy*p.usual {
			c.raise(r, "peer "+key, Signal{At: now, Kind: "connections",
				Text: fmt.Sprintf("%.0f connections to %s, usual are %.0f", p.count, key, p.usual)})
		}
		p.usual += (p.count - p.usual) / 12
		if p.count == 0 && p.usual < 1 {
			delete(c.peers, key)
		}
	}
}

func compare(a, b Signal) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Text, b.Text))
}
