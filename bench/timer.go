package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
)

const (
	defaultRate = 49
	amplified   = 20 // the rate at which the cost shows above the noise
	timerSlice  = 250 * time.Millisecond
)

const timerMethod = `A child that counts, pinned to one CPU, alternates between no timer, a bare cpu-clock event that nobody reads, and the
sampler with the child watched, both at %d times the default rate; %d rounds of %v each. The cost is the median of the
counts for each second of its CPU time against the slice without a timer in the same round, divided by the samples.
all windows: as of a suspected worker, with 16 KiB of stack. steady: the windows with every fifth sample.
at %d Hz: of one core, for one busy CPU.
`

// timerKinds are the ways to sample that are compared with none.
var timerKinds = []struct {
	name string
	on   func(pid int) (off func(), err error)
}{
	{"bare timer", bareTimer},
	{"sampler, steady", func(pid int) (func(), error) { return sampler(pid, false) }},
	{"sampler, all windows", func(pid int) (func(), error) { return sampler(pid, true) }},
}

func timerTable(ctx context.Context, o options) error {
	fmt.Printf("\nWhat sampling costs the sampled\n"+timerMethod, amplified, o.rounds, timerSlice, defaultRate)
	c, err := startCounter(runtime.NumCPU() - 1)
	if err != nil {
		return err
	}
	defer c.close()
	ratios := make([][]float64, len(timerKinds))
	for range o.rounds {
		base, err := c.slice(ctx, func(int) (func(), error) { return func() {}, nil })
		if err != nil {
			return err
		}
		for k := range timerKinds {
			speed, err := c.slice(ctx, timerKinds[k].on)
			if err != nil {
				return fmt.Errorf("%s: %w", timerKinds[k].name, err)
			}
			ratios[k] = append(ratios[k], base/speed-1)
		}
	}
	t := newTable("", "a sample", fmt.Sprintf("at %d Hz", defaultRate), "quartiles")
	for k, kind := range timerKinds {
		slices.Sort(ratios[k])
		at := func(q int) float64 { return ratios[k][len(ratios[k])*q/4] / (defaultRate * amplified) }
		t.row(kind.name, fmt.Sprintf("%.1f us", at(2)*1e6), fmt.Sprintf("%.2f %%", at(2)*defaultRate*100), fmt.Sprintf("%.1f to %.1f us", at(1)*1e6, at(3)*1e6))
	}
	return t.flush()
}

// bareTimer has the kernel interrupt every CPU, and nothing more.
func bareTimer(int) (func(), error) {
	var fds []int
	off := func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	for cpu := range runtime.NumCPU() {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: uint64(time.Second) / (defaultRate * amplified)}
		attr.Size = uint32(unsafe.Sizeof(attr))
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			off()
			return nil, fmt.Errorf("cpu-clock event: %w", err)
		}
		fds = append(fds, fd)
	}
	return off, nil
}

func sampler(pid int, full bool) (func(), error) {
	s, err := bpf.Open(defaultRate * amplified)
	if err != nil {
		return nil, err
	}
	if err := s.Watch(bpf.Watch{PID: pid, TID: pid, Full: full}); err != nil {
		_ = s.Close()
		return nil, err
	}
	return func() { _ = s.Close() }, nil
}

// spinArgument makes this program the child that counts.
const spinArgument = "--spin"

// counter is that child; the file holds its count.
type counter struct {
	cmd  *exec.Cmd
	dir  string
	word *atomic.Uint64
	data []byte
}

// startCounter starts one that has a CPU as its only one. Close it.
func startCounter(core int) (*counter, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "spinguard-bench-")
	if err != nil {
		return nil, err
	}
	c := &counter{dir: dir}
	path := filepath.Join(dir, "count")
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		c.close()
		return nil, err
	}
	if c.data, err = mapped(path); err != nil {
		c.close()
		return nil, err
	}
	c.word = (*atomic.Uint64)(unsafe.Pointer(&c.data[0]))
	cmd := exec.Command(self, spinArgument, path)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=off")
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.close()
		return nil, err
	}
	c.cmd = cmd
	var one unix.CPUSet
	one.Set(core)
	return c, unix.SchedSetaffinity(cmd.Process.Pid, &one)
}

func (c *counter) close() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
	if c.data != nil {
		_ = unix.Munmap(c.data)
	}
	_ = os.RemoveAll(c.dir)
}

// slice returns how fast the child counts while something is on.
func (c *counter) slice(ctx context.Context, on func(int) (func(), error)) (float64, error) {
	off, err := on(c.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	defer off()
	pause(ctx, 20*time.Millisecond)
	n, before := c.word.Load(), c.cpu()
	pause(ctx, timerSlice)
	n, before = c.word.Load()-n, c.cpu()-before
	if n == 0 || before <= 0 || ctx.Err() != nil {
		return 0, fmt.Errorf("the child does not run: %v", ctx.Err())
	}
	return float64(n) / float64(before), nil
}

// cpu is the CPU time of the child's main thread: interrupts count as its own.
func (c *counter) cpu() time.Duration {
	var ns int64
	f, err := os.Open(fmt.Sprintf("/proc/%d/schedstat", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fscan(f, &ns)
	return time.Duration(ns)
}

func mapped(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// spin counts for ever on the main thread.
func spin(path string) {
	runtime.LockOSThread()
	data, err := mapped(path)
	if err != nil {
		os.Exit(1)
	}
	word := (*atomic.Uint64)(unsafe.Pointer(&data[0]))
	for x := uint64(1); x != 0; { // always: the factor is odd
		for range 64 {
			x *= 6364136223846793005
		}
		word.Add(1)
	}
}
