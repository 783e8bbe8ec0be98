// Package watchdog is the agent: it watches the workers of the host's proxies,
// has the judge say what each is doing, keeps the evidence of those that are
// stuck, and carries out what the response decides.
//
// One goroutine, the loop, owns all state. Whoever else wants something done
// sends a function to it; what pages and commands read is a published copy.
package watchdog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/export"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/notify"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/signals"
	"github.com/spinguard/spinguard/watchdog/classes"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/respond"
	"github.com/spinguard/spinguard/web"
)

const (
	lookEvery        = 200 * time.Millisecond // looks at workers from outside
	scanEvery        = time.Second            // looks for new and gone processes
	suspectScanEvery = 3 * time.Second        // the same, while a worker is suspected
	busyEvery        = 50 * time.Millisecond  // reads the samples of workers that are busy
	alarmEvery       = 20 * time.Millisecond  // both, while an incident is open
	alarmScanEvery   = 40 * time.Millisecond
	imagesMax        = 128
	imagesFor        = time.Minute // that those are kept which no process uses
	recorderRate     = 2           // stacks a second of each worker that the flight recorder keeps,
	recorderTotal    = 4           // and of all, where many are busy; at least one in two seconds of each
)

// Agent is one running agent.
type Agent struct {
	cfg     config.Config
	version string
	log     *zap.Logger
	clock   clock
	jumps   jumps
	started time.Time

	images   *symbol.Cache
	finder   *proxy.Finder
	cgroups  *proxy.Cgroups
	sampler  *bpf.Sampler // nil: blind, only looks from outside
	blind    string       // why
	recorder *profiler.Recorder
	store    *incident.Store
	rails    *respond.Rails
	jitter   func() float64
	metrics  *web.Metrics
	feed     *web.Feed
	notifier *notify.Notifier
	exporter *export.Exporter

	found     found // by New, for the first scan
	instances map[string]*instance
	heirs     []int           // masters that binary upgrades of the wanted ones have started
	workers   map[int]*worker // by thread id
	episodes  []*episode
	manual    map[string]bool // quarantines that an operator made or lifted
	holds     []*serverHold   // servers of HAProxy that are taken out
	holdsAt   time.Duration
	classes   *classes.Table
	offences  classes.Offences

	connects      connectCounter // of the goroutine that collects signals
	recentSignals []signals.Signal
	hostReport    signals.Report

	jobs       chan func() // work for the loop
	writer     writer      // of incidents
	view       atomic.Pointer[view]
	readAt     atomic.Int64                            // when the view was last read, by the monotonic clock
	outdated   bool                                    // by a job, since the view was made
	tested     atomic.Pointer[profiler.SelfTestReport] // nil: not yet
	settings   atomic.Pointer[config.Config]
	beat       atomic.Int64 // when the loop last turned
	onDisk     int          // incidents, as last counted
	countedAt  time.Duration
	counters   bpf.Counters
	countersAt time.Duration // when they were read
	sampled    bool          // a first sample has come
	unreadable uint64        // records of the sampler that could not be decoded
	lastLook   time.Duration
	looks      uint64
	lastScan   time.Duration
	rested     bool // instead of it
	lastTick   time.Duration
}

// New prepares an agent: it opens the store of incidents and loads the
// sampler. Without BPF it runs in a degraded mode that sees blocked workers
// only, and says so. Close it.
func New(cfg config.Config, version string, log *zap.Logger) (_ *Agent, err error) {
	raisePriority(log) // first: the start is most of what the agent ever does
	collectSooner()
	a := &Agent{
		cfg: cfg, version: version, log: log, clock: systemClock(), started: time.Now(),
		images: symbol.NewCache(imagesMax), cgroups: proxy.NewCgroups(), recorder: profiler.NewRecorder(profiler.RecorderOptions{Rate: recorderRate, Total: recorderTotal}),
		instances: map[string]*instance{}, workers: map[int]*worker{}, manual: map[string]bool{}, classes: classes.New(classesMax),
		jobs: make(chan func(), 64), feed: &web.Feed{},
	}
	var opened sync.WaitGroup
	defer func() {
		opened.Wait()
		if err != nil {
			a.Close()
		}
	}()
	if a.cfg.Node == "" {
		a.cfg.Node, _ = os.Hostname()
	}
	a.publish()
	if a.finder, err = proxy.NewFinder(); err != nil {
		return nil, err
	}
	opened.Go(a.openSampler)
	opened.Go(func() { a.found.proxies, a.found.err = a.finder.Scan() })
	a.metrics = web.NewMetrics(version, a)
	a.jitter = rand.Float64
	a.rails = respond.NewRails(cfg.Rails, a.clock.wall(), a.jitter)
	settings := a.cfg
	a.settings.Store(&settings)
	a.store, err = incident.Open(filepath.Join(cfg.StateDir, "incidents"), incident.Retention{Count: cfg.Retention.Count, Bytes: cfg.Retention.Bytes})
	if err != nil {
		return nil, err
	}
	a.openReceivers(a.cfg, log)
	a.closeStale()
	a.loadHolds()
	a.openForLater()
	return a, nil
}

// collectSooner lets what lives, a few megabytes, grow by three quarters before
// garbage is collected: to let it double takes more memory than collecting
// sooner takes time.
func collectSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(75)
	}
}

func (a *Agent) openSampler() {
	sampler, err := bpf.Open(a.cfg.Sampling.Rate)
	if err != nil {
		a.blind = err.Error()
		a.log.Error("no sampler: workers stuck on a CPU can't be seen, only blocked ones", zap.Error(err))
		return
	}
	a.sampler = sampler
	a.writer.wake = sampler.Wake
}

// Close frees everything. It may be called once Run has returned.
func (a *Agent) Close() {
	a.writeRest()
	a.closeReceivers()
	for _, w := range a.workers {
		a.detach(w)
	}
	if a.sampler != nil {
		_ = a.sampler.Close()
	}
	if a.connects.kernel != nil {
		_ = a.connects.kernel.Close()
	}
	if a.finder != nil {
		a.finder.Close()
	}
	for _, in := range a.instances {
		in.close()
	}
	if a.store != nil {
		_ = a.store.Close()
	}
}

// Run watches until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	a.log.Info("agent started", zap.String("mode", string(a.cfg.Mode)), zap.String("version", a.version), zap.String("sampler", a.samplerState()))
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	connects := make(chan struct{})
	beside.Go(func() {
		wait(ctx, connectsDelay)
		a.openConnects()
		close(connects)
		a.collectSignals(ctx)
	})
	beside.Go(func() { a.finishStart(ctx, connects) })
	defer func() { stop(); beside.Wait() }() // they use what Close frees
	for ctx.Err() == nil {
		a.tick()
		a.beat.Store(int64(a.clock.mono()))
		if err := a.readSamples(a.pause()); err != nil {
			return fmt.Errorf("reading samples: %w", err)
		}
	}
	a.log.Info("agent stopped")
	return nil
}

// writeRest waits until the open incidents are on disk as they are now.
func (a *Agent) writeRest() {
	a.writer.close()
	a.writer.finish()
	for _, e := range a.episodes {
		a.write(e)
	}
	a.writer.close()
}

// tick does what is due by time.
func (a *Agent) tick() {
	a.doJobs()
	now := a.clock.mono()
	a.clockSet()
	alarm := a.alarmed()
	scanAfter := choose(alarm, alarmScanEvery, scanEvery)
	if !alarm && a.suspects() {
		scanAfter = suspectScanEvery
	}
	if now-a.lastScan >= scanAfter || a.lastScan == 0 {
		a.lastScan = now
		// Where nothing starts or ends, every other scan will do.
		if a.rested = !alarm && !a.rested && a.finder.Rests(); !a.rested {
			a.scan()
		}
		a.reportSaturated(now)
	}
	if now-a.lastLook >= choose(alarm, alarmEvery, lookEvery-10*time.Millisecond) {
		a.lastLook = now
		a.lookAtAll(now)
	}
	a.stepEpisodes()
	a.keepHolds(now)
	a.publish()
}

// alarmed says that an incident is open, or waits only for a stack.
func (a *Agent) alarmed() bool {
	if len(a.episodes) > 0 {
		return true
	}
	for _, w := range a.workers {
		if w.stackDue != 0 {
			return true
		}
	}
	return false
}

// suspects says that a worker is suspected, and no incident is open yet: then
// nothing must keep the loop from its samples for long.
func (a *Agent) suspects() bool {
	for _, w := range a.workers {
		if w.suspectedAt != 0 {
			return true
		}
	}
	return false
}

func choose(c bool, yes, no time.Duration) time.Duration {
	if c {
		return yes
	}
	return no
}

func (a *Agent) doJobs() {
	a.writer.finish()
	for {
		select {
		case job := <-a.jobs:
			job()
			a.outdated = true
		default:
			return
		}
	}
}

func (a *Agent) samplerState() string {
	if a.sampler == nil {
		return a.blind
	}
	return "ok"
}
