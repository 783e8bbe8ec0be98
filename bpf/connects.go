package bpf

import (
	"errors"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

//go:generate go tool bpf2go -cc clang -target amd64 -cflags "-O2 -g -Wall -Werror -fdebug-compilation-dir=." -type peer -type tally connects connects.bpf.c

const stepConnects = "loading the counter of connects"

// Peer is a remote address that a process connects to.
type Peer struct {
	PID     int
	Address netip.AddrPort
}

// Tally is what became of the connects to one peer since they are counted.
type Tally struct {
	Begun, Established                      uint64
	Refused, TimedOut, Unreachable, GivenUp uint64 // connects that failed; GivenUp: the process closed the socket first
	Closed                                  uint64 // of those established, whatever the reason
	Reset, Lost                             uint64 // of those closed; Lost: the peer did not answer any more
}

// Connects counts the TCP connects of some processes, as the kernel sees them.
// Attached it costs each change of state of any socket of the host a moment, so
// it is attached only while somebody wants to know. One goroutine uses it and
// closes it.
type Connects struct {
	objects connectsObjects
	link    link.Link // nil: not attached
	owners  map[int]bool
}

// LoadConnects loads the counter; it counts nothing before Attach. It needs
// what Open needs. Errors are *RefusedError.
func LoadConnects() (_ *Connects, err error) {
	c := &Connects{owners: map[int]bool{}}
	defer func() {
		if err != nil {
			_ = c.Close()
			err = explainConnects(err)
		}
	}()
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}) // see Sampler.load
	spec, err := loadConnects()
	if err != nil {
		return nil, err
	}
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return nil, err
	}
	if err := errors.Join(spec.Variables["ns_dev"].Set(ns.Dev), spec.Variables["ns_ino"].Set(ns.Ino)); err != nil {
		return nil, err
	}
	return c, spec.LoadAndAssign(&c.objects, withTypes())
}

// Attach starts counting, from nothing. Since Linux 5.19 it needs no
// capability. An attached counter is left alone.
func (c *Connects) Attach() error {
	if c.link != nil {
		return nil
	}
	// What is left of the last time is of sockets whose end nobody saw.
	if err := errors.Join(clearMap[uint64](c.objects.Connections), clearMap[connectsPeer](c.objects.Peers)); err != nil {
		return err
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "inet_sock_set_state", Program: c.objects.SetState})
	if err != nil {
		return explainConnects(err)
	}
	c.link = l
	return nil
}

// Attached says whether connects are being counted.
func (c *Connects) Attached() bool { return c.link != nil }

// Detach stops counting. The tallies stay until the next Attach.
func (c *Connects) Detach() error {
	if c.link == nil {
		return nil
	}
	err := c.link.Close()
	c.link = nil
	return err
}

func clearMap[K any](m *ebpf.Map) error {
	for {
		var key K
		if err := m.NextKey(nil, &key); errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if err := m.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
}

func explainConnects(err error) error {
	var refused *RefusedError
	if err = thisHost().explain(stepLoad, err); errors.As(err, &refused) {
		refused.Step = stepConnects
	}
	return err
}

// SetOwners says whose connects are counted from now on, at most 1,024
// processes. What was counted of others is forgotten.
func (c *Connects) SetOwners(pids []int) error {
	wanted := map[int]bool{}
	for _, pid := range pids {
		wanted[pid] = true
		if c.owners[pid] {
			continue
		}
		if err := c.objects.Owners.Put(uint32(pid), uint8(1)); err != nil {
			return err
		}
		c.owners[pid] = true
	}
	for pid := range c.owners {
		if !wanted[pid] {
			if err := c.objects.Owners.Delete(uint32(pid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return err
			}
			delete(c.owners, pid)
		}
	}
	return c.forget()
}

// forget drops the tallies of those who are no owners.
func (c *Connects) forget() error {
	var key connectsPeer
	var value connectsTally
	var gone []connectsPeer
	for it := c.objects.Peers.Iterate(); it.Next(&key, &value); {
		if !c.owners[int(key.Pid)] {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		if err := c.objects.Peers.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

// Read returns all tallies, and how many connects found no place in the table
// (4,096 peers of all owners).
func (c *Connects) Read() (tallies map[Peer]Tally, untold uint64, err error) {
	tallies = map[Peer]Tally{}
	var key connectsPeer
	var value connectsTally
	it := c.objects.Peers.Iterate()
	for it.Next(&key, &value) {
		tallies[key.decode()] = value.decode()
	}
	var perCPU []uint64
	if err := c.objects.Untold.Lookup(uint32(0), &perCPU); err != nil {
		return nil, 0, err
	}
	for _, n := range perCPU {
		untold += n
	}
	return tallies, untold, it.Err()
}

func (p connectsPeer) decode() Peer {
	return Peer{int(p.Pid), netip.AddrPortFrom(netip.AddrFrom16(p.Addr).Unmap(), p.Port)}
}

func (t *connectsTally) decode() Tally {
	return Tally{
		Begun: t.Begun, Established: t.Established, Refused: t.Refused, TimedOut: t.TimedOut, Unreachable: t.Unreachable,
		GivenUp: t.GivenUp, Closed: t.Closed, Reset: t.Reset, Lost: t.Lost,
	}
}

// Close detaches the counter and frees it. It may be called twice.
func (c *Connects) Close() error { return errors.Join(c.Detach(), c.objects.Close()) }
