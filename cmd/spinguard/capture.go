package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/flamegraph"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog"
)

func runCapture(e env, args []string) error {
	f := newFlags(e, "capture", "--pid PID --seconds S -o FILE",
		"Takes a profile of all threads of a process, Lua included, without stopping or changing it.\nThe ending of FILE chooses the format: "+strings.Join(flamegraph.Endings(), " "),
		"  spinguard capture --pid 4711 --seconds 5 -o worker.svg\n  spinguard capture --pid 4711 -o worker.pb.gz && go tool pprof -http : worker.pb.gz\n")
	pid := f.Int("pid", 0, "the `PID` of the process")
	seconds := f.Float64("seconds", 5, "how long, in `S` seconds")
	rate := f.Int("rate", 199, "`N` samples a second of each thread, 1 to 10000")
	out := f.String("o", "", "write to this `FILE`")
	if _, err := f.parse(args, 0, 0); err != nil {
		return err
	}
	switch {
	case *pid <= 0:
		return fmt.Errorf("%w of capture: --pid PID is missing", errUsage)
	case *seconds <= 0 || *seconds > 3600:
		return fmt.Errorf("%w of capture: --seconds %v is not within 0 to 3600", errUsage, *seconds)
	case *out == "":
		return fmt.Errorf("%w of capture: -o FILE is missing", errUsage)
	case *rate < 1 || *rate > 10_000:
		return fmt.Errorf("%w of capture: --rate %d is not within 1 to 10000", errUsage, *rate)
	}
	if err := flamegraph.CheckOutput(*out); err != nil {
		return err // before the time is spent
	}
	p, err := capture(e, *pid, *rate, time.Duration(*seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return saveProfile(e, p, *out)
}

func capture(e env, pid, rate int, length time.Duration) (*profile.Profile, error) {
	process, err := profiler.Open(pid, symbol.NewCache(64))
	if errors.Is(err, procmem.ErrGone) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = process.Close() }()
	sampler, err := bpf.Open(rate)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sampler.Close() }()
	// What a sample lacks is read from memory that changes. Without the right
	// to go first the profile is a little worse, and says so itself.
	_ = watchdog.RaisePriority()
	o := profiler.CaptureOptions{Duration: length, Period: time.Second / time.Duration(rate), Label: requestLabels(process)}
	if e.terminal {
		o.Progress = e.showCapture
	}
	p, err := profiler.Capture(e.ctx, sampler, process, o)
	if e.terminal {
		fmt.Fprintln(e.stderr)
	}
	return p, err
}

// requestLabels tells which request a worker of nginx works on, and its upstream.
// It is nil for other programs.
func requestLabels(p *profiler.Process) func(*profiler.Process, bpf.Sample, profiler.Result, *profiler.Labels) {
	if _, _, ok := p.Symbol("ngx_current_msec"); !ok {
		return nil
	}
	finder := proxy.RequestFinder{Code: p.Code}
	return func(p *profiler.Process, s bpf.Sample, r profiler.Result, l *profiler.Labels) {
		window := procmem.Window{Addr: s.Stack.Addr, Data: s.Stack.Data}
		if request, ok := finder.Find(p.Instant(), window, r.Request); ok {
			l.Request, l.Upstream = request.Line(false), request.Upstream.Name
		}
	}
}

// showCapture redraws one line of progress.
func (e env) showCapture(p profiler.Progress) {
	const width = 24
	done := min(width, int(width*p.Elapsed/max(p.Duration, 1)))
	fmt.Fprintf(e.stderr, "\r\x1b[K[%s%s] %4.1f of %.1f s  %d samples, %d lost  %s",
		strings.Repeat("#", done), strings.Repeat(".", width-done), p.Elapsed.Seconds(), p.Duration.Seconds(), p.Samples, p.Lost, p.Hottest)
}

// saveProfile writes the profile in the format that the file's ending asks for.
func saveProfile(e env, p *profile.Profile, out string) error {
	dir, err := os.MkdirTemp(filepath.Dir(out), ".spinguard-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	raw := filepath.Join(dir, strings.SplitN(filepath.Base(out), ".", 2)[0]+".pb.gz")
	w, err := os.Create(raw)
	if err != nil {
		return err
	}
	if err := errors.Join(p.Write(w), w.Close()); err != nil {
		return err
	}
	if _, err := flamegraph.Convert(raw, "", out); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "wrote %s\n", out)
	if errors.Is(e.ctx.Err(), context.Canceled) {
		fmt.Fprintln(e.stderr, "interrupted: the profile holds what was sampled until then")
	}
	return nil
}
