package bpf

import (
	"errors"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang -target amd64 -cflags "-O2 -g -Wall -Werror -fdebug-compilation-dir=." -type peer -type tally connects connects.bpf.c

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
// It costs each change of state of any socket of the host a moment, so it is
// open only while somebody wants to know. One goroutine uses it and closes it.
type Connects struct {
	objects connectsObjects
	link    link.Link
	owners  map[int]bool
}

// OpenConnects loads the counter and attaches it; nobody is counted before
// SetOwners. It needs what Open needs. Errors are *RefusedError.
func OpenConnects() (_ *Connects, err error) {
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
	if err := spec.LoadAndAssign(&c.objects, nil); err != nil {
		return nil, err
	}
	c.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "inet_sock_set_state", Program: c.objects.SetState})
	return c, err
}

func explainConnects(err error) error {
	var refused *RefusedError
	if err = thisHost().explain(stepLoad, err); errors.As(err, &refused) {
		refused.Step = stepConnects
	}
	return err
}

// SetOwners says whose connects are counted from now on. What was counted of
// others is forgotten.
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
func (c *Connects) Close() error {
	var err error
	if c.link != nil {
		err = c.link.Close()
		c.link = nil
	}
	return errors.Join(err, c.objects.Close())
}
