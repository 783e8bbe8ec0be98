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
	usual float64 // slow mean, over about a minute
	seen  int
}

const (
	peersMost  = 256
	growthLow  = 50 // fewer connections are no trouble
	growthBy   = 3.0
	growthSeen = 6 // rounds until what is usual is known
	walkEvery  = 3 // rounds
	fullQueue  = 0.9
	shownQueue = 0.25
)

// grown takes the count after so many rounds and says whether it is far over
// what is usual.
func (p *peer) grown(n float64, rounds int) bool {
	p.seen += rounds
	return p.seen > growthSeen && n >= growthLow && n > growthBy*p.usual
}

func (p *peer) take(n float64, rounds int) {
	for range rounds {
		p.usual += (n - p.usual) / 12
	}
}

// collectSockets looks at listen queues, at the connections that the users of
// the workers have to remote addresses, and at who listens at those that are on
// this host. Other network namespaces than ours are not seen.
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
	ports, listeners := map[uint16]bool{}, map[netip.AddrPort][]uint32{}
	var full []socket
	err := c.dump(1<<listen, func(s socket) {
		ports[s.local.Port()] = true
		if len(listeners) < 4096 {
			listeners[s.local] = append(listeners[s.local], s.inode)
		}
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
	if c.walkDue(r) {
		err = c.walkConnections(r, now, workers, users, ports, listeners)
	}
	c.followBackends(r, now, listeners)
	return err
}

// walkDue says whether it is time to look at all connections. For that the
// kernel walks a table that is large on any host, so it is done each time only
// at first and while something hints at trouble.
func (c *Collector) walkDue(r *Report) bool {
	c.unwalked++
	return c.rounds <= walkEvery || c.unwalked >= walkEvery || c.grew || r.Suspected != ""
}

// walkConnections counts the connections that the workers' users have to remote
// addresses.
func (c *Collector) walkConnections(r *Report, now time.Time, workers []Worker, users map[uint32]bool, ports map[uint16]bool, listeners map[netip.AddrPort][]uint32) error {
	counts, inodes := map[netip.AddrPort]int{}, map[netip.AddrPort][]uint32{}
	err := c.dump(connecting, func(s socket) {
		if !ports[s.local.Port()] && users[s.uid] && (len(counts) < 4096 || counts[s.remote] > 0) {
			counts[s.remote]++
			if list := inodes[s.remote]; len(list) < 64 {
				inodes[s.remote] = append(list, s.inode)
			}
		}
	})
	c.judgePeers(r, now, counts, c.unwalked)
	c.meetBackends(now, workers, inodes, listeners)
	c.unwalked = 0
	return err
}

// connecting are the states of connections that count: those that the peer has
// left and the worker still keeps, too.
const connecting = 1<<established | 1<<synSent | 1<<closeWait

func (c *Collector) judgeQueue(r *Report, now time.Time, workers []Worker, s socket) {
	share := float64(s.received) / float64(s.sent)
	for _, w := range c.acceptors(workers, s.inode) {
		r.Queues[w.PID] = max(r.Queues[w.PID], share)
		if share >= fullQueue {
			c.raise(r, fmt.Sprint("queue ", w.PID, s.local), Signal{At: now, Kind: "listen_queue", Proxy: w.Proxy,
				Text: fmt.Sprintf("worker %d (pid %d) does not accept: %d of %d connections wait at %s", w.Index, w.PID, s.received, s.sent, s.local)})
		}
	}
}

// acceptors returns those of the workers who accept from a listening socket.
// Workers of nginx inherit all of their master's sockets, also those of the
// others with reuseport: whose epoll has it is who accepts. If none has (they
// take turns with accept_mutex), all who hold it do.
func (c *Collector) acceptors(workers []Worker, inode uint32) []Worker {
	var holders, waiting []Worker
	seen := map[int]bool{}
	for _, w := range workers {
		if seen[w.PID] {
			continue
		}
		seen[w.PID] = true
		held, waits := c.holds(w.PID, inode)
		if held {
			holders = append(holders, w)
		}
		if waits {
			waiting = append(waiting, w)
		}
	}
	if len(waiting) > 0 {
		return waiting
	}
	return holders
}

// judgePeers follows the connections to each remote address against their
// usual number, a mean over about a minute, after so many rounds.
func (c *Collector) judgePeers(r *Report, now time.Time, counts map[netip.AddrPort]int, rounds int) {
	for address, n := range counts {
		key := address.String()
		if c.peers[key] == nil && n >= growthLow/5 && len(c.peers) < peersMost {
			c.peers[key] = &peer{usual: float64(n)}
		}
	}
	c.grew = false
	for key, p := range c.peers {
		address, err := netip.ParseAddrPort(key)
		if err != nil {
			continue
		}
		n := float64(counts[address])
		if p.grown(n, rounds) {
			c.grew = true
			text := fmt.Sprintf("%.0f connections to %s, usual are %.0f", n, key, p.usual)
			r.suspect(text)
			c.raise(r, "peer "+key, Signal{At: now, Kind: "connections", Text: text})
		}
		p.take(n, rounds)
		if n == 0 && p.usual < 1 {
			delete(c.peers, key)
		}
	}
}

func compare(a, b Signal) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Text, b.Text))
}
