// Package bpf loads the sampler and turns its records into samples. The BPF
// program copies and interprets nothing; neither does this package.
package bpf

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// The steps that a RefusedError names.
const (
	stepLoad  = "loading the sampler"
	stepEvent = "opening the cpu-clock event"
)

// A healthy thread's windows are copied with each n-th sample only.
const calmFullEvery = 5

// Sampler is the loaded program and its events. Goroutines may share it,
// except that only one may call Read at a time. The caller closes it.
type Sampler struct {
	objects samplerObjects
	reader  *ringbuf.Reader
	waiter  *waiter
	record  ringbuf.Record
	rate    int
	further assembler // of Read's

	reading sync.Mutex // while the ring is read: it must not go away meanwhile
	closed  bool

	mu     sync.Mutex
	cpus   []int       // perf events of the steady rate, one per CPU
	bursts map[int]int // tid -> perf event of the burst rate
}

// Open loads the sampler and starts it at rate samples a second on each CPU.
// It needs Linux 5.8 with BTF, and root or CAP_BPF with CAP_PERFMON. Errors
// are *RefusedError.
func Open(rate int) (*Sampler, error) { return openSized(rate, ringSize(runtime.NumCPU())) }

// OpenSmall does the same with the smallest ring that holds a few of the
// deepest stacks: enough for one thread whose samples are read as they come.
func OpenSmall(rate int) (*Sampler, error) { return openSized(rate, 1<<20) }

func openSized(rate int, ring uint32) (_ *Sampler, err error) {
	s := &Sampler{rate: rate, bursts: map[int]int{}}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if err := s.load(ring); err != nil {
		return nil, thisHost().explain(stepLoad, err)
	}
	if s.reader, err = ringbuf.NewReader(s.objects.Ring); err != nil {
		return nil, thisHost().explain(stepLoad, err)
	}
	s.reader.SetDeadline(longAgo)
	if s.waiter, err = newWaiter(s.objects.Ring.FD()); err != nil {
		return nil, thisHost().explain(stepLoad, err)
	}
	if err := s.start(); err != nil {
		return nil, thisHost().explain(stepEvent, err)
	}
	return s, nil
}

func (s *Sampler) load(ring uint32) error {
	// Kernels before 5.11 count maps as locked memory. Where the limit can't
	// be raised, newer kernels do not need it: so the attempt may fail.
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	spec, err := loadSampler()
	if err != nil {
		return err
	}
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return err
	}
	// Namespaces live on a device with major number 0, where the kernel's and
	// the user's encoding of a device are the same.
	if err := spec.Variables["ns_dev"].Set(ns.Dev); err != nil {
		return err
	}
	if err := spec.Variables["ns_ino"].Set(ns.Ino); err != nil {
		return err
	}
	spec.Maps["ring"].MaxEntries = ring
	return spec.LoadAndAssign(&s.objects, withTypes())
}

// ringSize returns the bytes of the ring: a power of two, as the kernel wants
// it. It is resident twice over, since it is mapped so that records that wrap
// read in one piece.
func ringSize(cpus int) uint32 {
	const perCPU, least, most = 1 << 20, 8 << 20, 32 << 20
	size := uint32(least)
	for size < most && int(size) < cpus*perCPU {
		size *= 2
	}
	return size
}

// start opens the steady event on every CPU.
func (s *Sampler) start() error {
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		fd, err := openClock(-1, cpu, s.rate, s.objects.Sample.FD())
		if err != nil {
			return err
		}
		s.cpus = append(s.cpus, fd)
	}
	return nil
}

// longAgo is the reader's deadline: it never waits.
var longAgo = time.Unix(1, 0)

// Watch starts copying samples of the thread w.TID, or changes what is copied.
func (s *Sampler) Watch(w Watch) error {
	s.mu.Lock()
	_, burst := s.bursts[w.TID]
	s.mu.Unlock()
	v := watchValue(w)
	if burst {
		v.Period, v.FullEvery = s.burstPeriod(w.TID), 1
	}
	if err := s.objects.Lost.Update(uint32(w.TID), uint64(0), ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return err
	}
	return s.objects.Watched.Put(uint32(w.TID), v)
}

// Lost returns how many samples of a watched thread were lost since Watch was
// first called for it, because the ring was full. It is 0 for a thread that is
// not watched.
func (s *Sampler) Lost(tid int) (uint64, error) {
	var n uint64
	err := s.objects.Lost.Lookup(uint32(tid), &n)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, nil
	}
	return n, err
}

// Unwatch stops copying samples of a thread. A thread that is not watched is
// not an error.
func (s *Sampler) Unwatch(tid int) error {
	s.closeBurst(tid)
	for _, m := range []*ebpf.Map{s.objects.Watched, s.objects.Lost} {
		if err := m.Delete(uint32(tid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

// Read returns the next sample. It waits until the deadline and then returns
// os.ErrDeadlineExceeded, but only after all samples that are already there.
// After Close it returns os.ErrClosed.
func (s *Sampler) Read(deadline time.Time) (Sample, error) {
	sample, err := s.ReadHead(deadline)
	if err == nil {
		err = sample.Load()
	}
	return sample, err
}

// ReadHead is like Read, but leaves it to the caller whether the sample's
// windows are copied: see Sample.Load. One goroutine may use it.
func (s *Sampler) ReadHead(deadline time.Time) (Sample, error) {
	for over := false; ; {
		sample, err := s.next()
		if over || !errors.Is(err, os.ErrDeadlineExceeded) {
			return sample, err
		}
		err = s.waiter.wait(deadline, s.waiting)
		// Samples that came without a wake-up are still to be read.
		if over = errors.Is(err, os.ErrDeadlineExceeded); !over && err != nil {
			return Sample{}, err
		}
	}
}

// waiting says that something is in the ring, or no longer can be.
func (s *Sampler) waiting() bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.closed || s.reader.AvailableBytes() > 0
}

// next returns the next sample in the ring, os.ErrDeadlineExceeded if it is empty.
func (s *Sampler) next() (Sample, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for !s.closed {
		if s.reader.AvailableBytes() == 0 {
			return Sample{}, os.ErrDeadlineExceeded // without a system call, in which the reader would find out
		}
		if err := s.reader.ReadInto(&s.record); err != nil {
			return Sample{}, err
		}
		if sample, whole, err := s.further.take(s.record.RawSample); whole || err != nil {
			return sample, err
		}
	}
	return Sample{}, os.ErrClosed
}

// Wake lets a Read that waits, or the next one, return soon: as if its deadline
// had come, or when it has. Any goroutine may call it.
func (s *Sampler) Wake() { s.waiter.wake() }

// Close stops sampling and frees everything. It may be called twice.
func (s *Sampler) Close() error {
	s.mu.Lock()
	for _, fd := range s.cpus {
		_ = unix.Close(fd)
	}
	for _, fd := range s.bursts {
		_ = unix.Close(fd)
	}
	s.cpus, s.bursts = nil, map[int]int{}
	s.mu.Unlock()
	if s.waiter != nil {
		_ = s.waiter.close()
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.closed = true
	if s.reader != nil {
		_ = s.reader.Close()
	}
	return s.objects.Close()
}

func watchValue(w Watch) samplerWatch {
	v := samplerWatch{
		ProgressAddr: w.ProgressAddr, ProgressSize: uint32(w.ProgressSize), StackEnd: w.StackEnd, CrumbAddr: w.CrumbAddr,
		FullEvery: calmFullEvery,
		LuaGlobal: w.Lua.Global, LuaGlobalOffset: uint32(w.Lua.GlobalOffset), LuaGlobalSize: uint32(w.Lua.GlobalSize),
		LuaCurL: uint32(w.Lua.CurL), LuaJitBase: uint32(w.Lua.JITBase), LuaBase: uint32(w.Lua.Base),
		LuaTop: uint32(w.Lua.Top), LuaStack: uint32(w.Lua.Stack), LuaMaxStack: uint32(w.Lua.MaxStack),
	}
	if w.Full {
		v.FullEvery = 1
	}
	if w.Switches {
		v.Switches = 1
	}
	if w.Patient {
		v.Patient = 1
	}
	return v
}
