package signals

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// backend is an address on this host that workers connect to.
type backend struct {
	inode    uint32  // of the listening socket; 0: nobody listens
	owner    process // who listens; the zero value: not found, such as in another pid namespace
	restarts uint64
	used     time.Time // when a worker was last seen to be connected
}

// process is named for ever by its pid and start.
type process struct {
	pid   int
	start string // in clock ticks since boot
	name  string
}

const backendsMost = 256

// followBackends tells which of the local processes that workers connect to
// have ended, and which are started anew: another process listens at the same
// address. Who listens is looked for only when the socket or its process is
// another than before.
func (c *Collector) followBackends(r *Report, now time.Time, listeners map[netip.AddrPort][]uint32) {
	wanted := map[uint32]process{}
	for address, b := range c.backends {
		if inode := listenerAt(listeners, address, b.inode); inode != 0 && (inode != b.inode || b.owner.pid != 0 && !c.runs(b.owner)) {
			wanted[inode] = process{}
		}
	}
	c.findOwners(wanted)
	for address, b := range c.backends {
		inode := listenerAt(listeners, address, b.inode)
		owner, looked := wanted[inode]
		switch {
		case inode == 0 && b.inode != 0:
			c.backendGone(r, now, address, b)
		case looked:
			b.is(r, now, address, owner)
		}
		b.inode = inode
		r.Backends[address.String()] = b.restarts
		if now.Sub(b.used) > forgetAfter {
			delete(c.backends, address)
		}
	}
}

// meetBackends adds the addresses of this host that workers are connected to,
// given the sockets that their users have connected to each address. Whether a
// worker has one of them open is looked up for new addresses only.
func (c *Collector) meetBackends(now time.Time, workers []Worker, inodes map[netip.AddrPort][]uint32, listeners map[netip.AddrPort][]uint32) {
	var local map[netip.Addr]bool
	var own map[uint32]bool
	for address, list := range inodes {
		b := c.backends[address]
		if b == nil && len(c.backends) < backendsMost && listenerAt(listeners, address, 0) != 0 && now.Sub(c.others[address]) > again {
			if local == nil {
				local, own = localAddresses(), c.workerSockets(workers)
			}
			if address.Addr().IsLoopback() || local[address.Addr()] {
				if !slices.ContainsFunc(list, func(inode uint32) bool { return own[inode] }) {
					c.notOurs(now, address)
					continue
				}
				b = &backend{}
				c.backends[address] = b
			}
		}
		if b != nil {
			b.used = now
		}
	}
}

// notOurs remembers for a while that none of the workers is connected to an
// address, but other processes of their user.
func (c *Collector) notOurs(now time.Time, address netip.AddrPort) {
	if len(c.others) >= backendsMost {
		clear(c.others)
	}
	c.others[address] = now
}

// workerSockets are the inodes of the workers' sockets.
func (c *Collector) workerSockets(workers []Worker) map[uint32]bool {
	own, seen := map[uint32]bool{}, map[int]bool{}
	for _, w := range workers {
		if seen[w.PID] {
			continue
		}
		seen[w.PID] = true
		c.eachFile(w.PID, func(_, target string) bool {
			var inode uint32
			if n, err := fmt.Sscanf(target, "socket:[%d]", &inode); n == 1 && err == nil {
				own[inode] = true
			}
			return true
		})
	}
	return own
}

func localAddresses() map[netip.Addr]bool {
	list := map[netip.Addr]bool{}
	addresses, _ := net.InterfaceAddrs() // without them only loopback is local
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			list[prefix.Addr().Unmap()] = true
		}
	}
	return list
}

func (c *Collector) backendGone(r *Report, now time.Time, address netip.AddrPort, b *backend) {
	if b.owner.pid == 0 {
		return
	}
	text := fmt.Sprintf("backend %s: nobody listens any more, %s", address, b.owner)
	if !c.runs(b.owner) {
		text += " has ended"
	}
	r.suspect(text)
	r.Signals = append(r.Signals, Signal{At: now, Kind: "restart", Text: text})
}

// is takes in who listens by now.
func (b *backend) is(r *Report, now time.Time, address netip.AddrPort, owner process) {
	before := b.owner
	if owner.pid != 0 {
		b.owner = owner
	}
	if before.pid == 0 || owner.pid == 0 || before.pid == owner.pid && before.start == owner.start {
		return // new to us, not to be told, or the same with a new socket
	}
	b.restarts++
	r.Signals = append(r.Signals, Signal{At: now, Kind: "restart", Text: fmt.Sprintf("backend %s is a new process: %s, before it %s", address, owner, before)})
}

func (p process) String() string { return fmt.Sprintf("%s (pid %d)", p.name, p.pid) }

// listenerAt returns the inode of a socket that takes connections to an
// address, 0 if none does. Of several it is the known one.
func listenerAt(listeners map[netip.AddrPort][]uint32, address netip.AddrPort, known uint32) uint32 {
	for _, at := range []netip.Addr{address.Addr(), netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		list := listeners[netip.AddrPortFrom(at, address.Port())]
		if slices.Contains(list, known) {
			return known
		}
		if len(list) > 0 {
			return list[0]
		}
	}
	return 0
}

// findOwners fills in who holds the sockets: of several, such as a master and
// its children, the oldest; init, which opens sockets for services, only if
// nobody else does.
func (c *Collector) findOwners(wanted map[uint32]process) {
	if len(wanted) == 0 {
		return
	}
	names := map[string]uint32{}
	for inode := range wanted {
		names[fmt.Sprintf("socket:[%d]", inode)] = inode
	}
	entries, _ := os.ReadDir(c.proc) // what can't be read has no owner
	for _, e := range entries {
		var pid int
		if n, err := fmt.Sscanf(e.Name(), "%d", &pid); n != 1 || err != nil || fmt.Sprint(pid) != e.Name() {
			continue
		}
		var p process
		c.eachFile(pid, func(_, target string) bool {
			inode, ok := names[target]
			if !ok {
				return true
			}
			if p.pid == 0 {
				p, _ = c.process(pid)
			}
			if old := wanted[inode]; p.pid != 0 && (old.pid <= 1 || p.pid != 1 && p.older(old)) {
				wanted[inode] = p
			}
			return true
		})
	}
}

func (p process) older(b process) bool {
	if len(p.start) != len(b.start) {
		return len(p.start) < len(b.start)
	}
	return p.start < b.start
}

// process reads /proc/PID/stat.
func (c *Collector) process(pid int) (process, bool) {
	text, err := os.ReadFile(filepath.Join(c.proc, fmt.Sprint(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	_, rest, _ := strings.Cut(string(text), "(")
	end := strings.LastIndexByte(rest, ')') // the name may hold anything
	if end < 0 {
		return process{}, false
	}
	fields := strings.Fields(rest[end+1:])
	if len(fields) < 20 || fields[0] == "Z" {
		return process{}, false
	}
	return process{pid, fields[19], rest[:end]}, true
}

func (c *Collector) runs(p process) bool {
	now, ok := c.process(p.pid)
	return ok && now.start == p.start
}
