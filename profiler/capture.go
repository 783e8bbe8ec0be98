package profiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/stack"
)

// Source gives the samples of the threads that it is told to watch; it is what
// a bpf.Sampler can do.
type Source interface {
	Watch(bpf.Watch) error
	Unwatch(tid int) error
	// Lost tells how many samples of a watched thread found no room, since it
	// is watched.
	Lost(tid int) (uint64, error)
	// Read waits until the deadline and then returns os.ErrDeadlineExceeded,
	// but only after all samples that are already there.
	Read(deadline time.Time) (bpf.Sample, error)
}

// CaptureOptions say what to capture.
type CaptureOptions struct {
	Duration time.Duration
	Period   time.Duration // of the source, for the profile's header
	Proxy    string        // label of every sample
	// Label adds labels to a sample, such as the request; may be nil.
	Label func(*Process, bpf.Sample, Result, *Labels)
	// Progress is called about five times a second; may be nil.
	Progress func(Progress)
}

// Progress tells how far a capture has come.
type Progress struct {
	Elapsed, Duration time.Duration
	Samples, Lost     uint64
	Stacks            int    // distinct ones
	Hottest           string // place of the leaf seen last
}

// rescan is how often a capture looks for new threads and tells its progress.
const rescan = 200 * time.Millisecond

// Capture takes a profile of all threads of a process until the duration has
// passed, the context ends or the process dies; what was sampled until then is
// returned in each case. The source must have no other reader meanwhile. An
// error means that there is no profile.
func Capture(ctx context.Context, source Source, p *Process, o CaptureOptions) (*profile.Profile, error) {
	c := &capture{source: source, process: p, options: o, began: time.Now(), builder: NewBuilder(time.Now(), o.Period), watched: map[int]uint64{}, switches: p.SwitchesStacks()}
	if err := c.threads(); err != nil {
		return nil, err
	}
	defer c.unwatch()
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	c.unwatch()
	if err := c.readUntil(time.Now()); err != nil {
		return nil, err
	}
	c.builder.SetDuration(time.Since(c.began))
	return c.builder.Profile()
}

type capture struct {
	source  Source
	process *Process
	options CaptureOptions
	began   time.Time
	builder *Builder
	watched map[int]uint64 // thread -> end of its stack, 0 until its first sample
	lua     bpf.LuaWatch   // what the watches say of the VM
	hottest string

	switches bool // as bpf.Watch has it
}

func (c *capture) run(ctx context.Context) error {
	end := c.began.Add(c.options.Duration)
	for now := c.began; now.Before(end) && ctx.Err() == nil; now = time.Now() {
		next := now.Add(rescan)
		if next.After(end) {
			next = end
		}
		if err := c.readUntil(next); err != nil {
			return err
		}
		c.tell()
		if !c.process.Alive() {
			c.builder.Comment("ended", "the process ended during the capture")
			return nil
		}
		if err := c.threads(); err != nil {
			return err
		}
	}
	return nil
}

// threads watches the threads that are not watched yet, and all of them anew
// once a Lua VM has been found.
func (c *capture) threads() error {
	if lua := c.process.LuaWatch(); lua != c.lua {
		c.lua = lua
		for tid, end := range c.watched {
			if err := c.watch(tid, end); err != nil {
				return err
			}
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", c.process.PID()))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if _, known := c.watched[tid]; err != nil || known {
			continue
		}
		if err := c.watch(tid, 0); err != nil {
			return err
		}
	}
	return nil
}

func (c *capture) watch(tid int, stackEnd uint64) error {
	c.watched[tid] = stackEnd
	return c.source.Watch(bpf.Watch{
		PID: c.process.PID(), TID: tid, StackEnd: stackEnd, Lua: c.lua, Full: true, Switches: c.switches,
	})
}

func (c *capture) unwatch() {
	for tid := range c.watched {
		if n, err := c.source.Lost(tid); err == nil && n > 0 {
			c.builder.Lost("ring full", n)
			c.builder.Comment(fmt.Sprintf("lost_ring_full_of_%d", tid), strconv.FormatUint(n, 10))
		}
		// A thread that is gone needs no unwatching. Its count goes with it.
		_ = c.source.Unwatch(tid)
	}
}

func (c *capture) readUntil(deadline time.Time) error {
	for {
		s, err := c.source.Read(deadline)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case errors.Is(err, os.ErrClosed):
			return err
		case err != nil:
			c.builder.Lost("unreadable record", 1)
			continue
		}
		if err := c.add(s); err != nil {
			return err
		}
	}
}

func (c *capture) add(s bpf.Sample) error {
	if _, ours := c.watched[s.TID]; !ours {
		return nil
	}
	r := c.process.Understand(s)
	labels := Labels{Proxy: c.options.Proxy, Worker: strconv.Itoa(s.PID)}
	if s.TID != s.PID {
		labels.Worker += "/" + strconv.Itoa(s.TID)
	}
	if c.options.Label != nil {
		c.options.Label(c.process, s, r, &labels)
	}
	c.builder.Add(r, s.Weight, labels)
	if len(r.Stack.Frames) > 0 {
		c.hottest = r.Stack.Frames[0].Place()
	}
	return c.placeStack(s)
}

// placeStack tells the source where the stack of a thread ends, which only
// its stack pointer shows. The main thread's end is known to the kernel.
func (c *capture) placeStack(s bpf.Sample) error {
	if s.TID == s.PID || c.watched[s.TID] != 0 {
		return nil
	}
	end := c.process.StackEnd(s.Registers[stack.RSP])
	if end == 0 {
		return nil
	}
	return c.watch(s.TID, end)
}

func (c *capture) tell() {
	if c.options.Progress == nil {
		return
	}
	taken, _, lost, _ := c.builder.Counts()
	c.options.Progress(Progress{
		Elapsed: time.Since(c.began), Duration: c.options.Duration, Samples: taken, Lost: lost,
		Stacks: c.builder.Stacks(), Hottest: c.hottest,
	})
}
