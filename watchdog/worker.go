package watchdog

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/classes"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// level is how closely a worker is watched.
type level int

const (
	calm    level = iota // the steady rate, windows now and then
	settled              // the same, of one that has been busy for long with one request after the other
	busy                 // the steady rate, all windows, read a few at a time
	closer               // the steady rate, all windows, read as they come
	burst                // the burst rate, all windows
)

// settleAfter is how long a worker must be busy before it is settled: by then
// the judge has said whether it is saturated.
const settleAfter = 4 * time.Second

// worker is one watched thread. The loop owns it.
type worker struct {
	proxy.Worker
	in                 *instance
	process            *profiler.Process
	handle             *procmem.Process // to end it by
	looker             *proxy.Watcher
	watch              bpf.Watch
	level              level
	busyFrom           time.Duration // since when it is at levels settled and busy, if it is
	waits              *waitCounter  // counts entries into the event wait while that is in doubt
	nspid              int
	files              balancer.Files // of the library, once the slot is known
	slot               uint64         // address of its crumb in its memory, 0: unknown
	filesAt, filesWait time.Duration  // when to look for the library's files again
	since              time.Time      // when its process started
	seenAt             time.Duration

	judge    judge.State
	decision judge.Decision
	last     judge.Observation
	word     uint64 // the progress word as last seen
	wordOK   bool
	turnedAt time.Duration // when a sample last showed that the word had moved
	look     proxy.Look
	wait     proxy.Wait // what it was last seen asleep in
	crumb    balancer.Crumb
	requests proxy.RequestFinder
	streams  *proxy.HAProxyMap // nil: not HAProxy, or not understood
	context  proxy.HAProxyContext
	request  proxy.Request
	hasReq   bool
	budget   classes.Budget
	overAt   time.Duration // when a request over its budget was told; 0: never
	hotAt    time.Duration // when its hot path was told; 0: never
	varied   varied
	// CPU time of samples since the last that was understood.
	unclassed time.Duration
	result    profiler.Result // the last that was understood
	serves    bool            // it was seen to turn its loop

	suspectedAt time.Duration // 0: not suspected
	stallFrom   time.Duration // since when it stood still then
	cpuAt       time.Duration // CPU time then
	delayAt     time.Duration // run delay then
	recent      []sampled     // since it is suspected, else the last few
	dropped     int           // samples since then that were not kept
	blind       int           // samples since then that came without a stack
	lostAt      losses        // what the sampler had lost then
	ringLost    uint64        // of its samples, as last counted
	lossesAt    uint64        // what all workers had lost then
	lockOwner   int
	stackDue    time.Duration // when it is said to be blocked even without a stack; 0: it is not blocked
	episode     *episode

	lookedClosely time.Duration
	glances       int           // since it was last looked at
	napped        time.Duration // when it was last seen asleep outside of its event wait; 0: never

	shareFrom time.Duration // window of the CPU share that is shown
	shareCPU  time.Duration
	share     float64
}

// sampled is one understood sample of a suspected worker.
type sampled struct {
	when   time.Duration
	weight time.Duration
	result profiler.Result
	labels profiler.Labels
	// glanced: nobody was in doubt of the worker, so values were not read.
	glanced bool

	request proxy.Request
	hasReq  bool
}

// recentMax bounds the samples that are kept of one suspicion, recentCalm
// those that are kept without one.
const (
	recentMax  = 600
	recentCalm = 64
)

// attach begins to watch a worker.
func (a *Agent) attach(in *instance, info proxy.Worker) error {
	process, err := profiler.Open(info.PID, a.images)
	if err != nil {
		return err
	}
	if process.StartTime() != info.StartTime {
		_ = process.Close()
		return procmem.ErrGone
	}
	w := &worker{Worker: info, in: in, process: process, nspid: balancer.NamespacePID(info.PID), seenAt: a.clock.mono()}
	w.since, w.requests.Code = startedAt(info.StartTime, a.clock), process.Code
	if w.handle, err = procmem.Open(info.PID); err != nil {
		_ = process.Close()
		return err
	}
	if w.looker, err = proxy.NewWatcher(info, a.cgroups); err != nil {
		w.close()
		return err
	}
	w.watch = bpf.Watch{PID: info.PID, TID: info.TID, ProgressAddr: info.Progress.Addr, ProgressSize: info.Progress.Size, Lua: process.LuaWatch(), Switches: process.SwitchesStacks()}
	if a.sampler != nil {
		if err := a.sampler.Watch(w.watch); err != nil {
			w.close()
			return err
		}
	}
	a.workers[info.TID] = w
	if w.Kind == proxy.HAProxy {
		if w.streams, err = proxy.NewHAProxyMap(process.Memory(), info); err != nil {
			a.log.Info("frontends and backends can't be told", zap.Int("pid", info.PID), zap.Error(err))
		}
	}
	a.findFiles(w)
	a.log.Info("worker appeared", zap.String("proxy", in.Name), zap.Int("pid", info.PID), zap.Int("tid", info.TID), zap.Int("index", info.Index))
	return nil
}

// detach ends the watch of a worker.
func (a *Agent) detach(w *worker) {
	if a.sampler != nil {
		// A thread that is gone needs no unwatching.
		_ = a.sampler.Unwatch(w.TID)
	}
	w.close()
	delete(a.workers, w.TID)
}

func (w *worker) close() {
	w.waits.close()
	if w.looker != nil {
		w.looker.Close()
	}
	_ = w.handle.Close()
	_ = w.process.Close()
}

// findFiles looks for the library's files in the worker's mappings, and for
// the slot of its crumbs once it has claimed one.
func (a *Agent) findFiles(w *worker) {
	now := a.clock.mono()
	if w.slot != 0 || w.Kind != proxy.Nginx || now < w.filesAt {
		return
	}
	// Mappings are costly to read, and most proxies never map these files.
	w.filesWait = min(max(2*w.filesWait, time.Second), time.Minute)
	w.filesAt = now + w.filesWait
	maps, err := procmem.ReadMaps(w.PID)
	if err != nil {
		return
	}
	files := balancer.FindFiles(maps, w.process.Memory(), w.PID)
	w.in.openLedger(files.Ledger, a.clock.wall(), a.log)
	if files.Crumbs.Start != 0 {
		w.filesAt, w.filesWait = 0, 0 // it will claim its slot soon
	}
	slot, err := balancer.SlotAddress(w.process.Memory(), files.Crumbs, w.nspid)
	if err != nil {
		if !errors.Is(err, balancer.ErrNoCrumbs) {
			a.log.Debug("crumbs can't be read", zap.Int("pid", w.PID), zap.Error(err))
		}
		return
	}
	w.files, w.slot, w.watch.CrumbAddr = files, slot, slot
	a.rewatch(w)
}

// rewatch tells the sampler what to copy of the worker from now on.
func (a *Agent) rewatch(w *worker) {
	w.watch.Full, w.watch.Patient = w.level > settled || a.cfg.RequestBudget.CPU > 0, w.level == busy && a.cfg.RequestBudget.CPU == 0
	if a.sampler == nil {
		return
	}
	var err error
	switch w.level {
	case burst:
		err = a.sampler.Burst(w.watch, a.cfg.Sampling.Burst)
	default:
		err = a.sampler.Calm(w.watch)
	}
	if err != nil && w.process.Alive() {
		a.log.Warn("could not change how a worker is sampled", zap.Int("pid", w.PID), zap.Error(err))
	}
}

// follow watches the worker as closely as the judge wishes. Once the
// evidence of an incident is taken the steady rate is enough.
func (a *Agent) follow(w *worker, d judge.Decision) {
	want := calm
	if w.level != settled && w.level != busy {
		w.busyFrom = w.last.Now
	}
	switch {
	case d.Burst && (w.episode == nil || !w.episode.writing && !w.episode.written):
		want = burst
	case d.Close && doubtful(d):
		want = closer
	case d.Close && w.settles():
		want = settled
	case d.Close:
		want = busy
	}
	if want != w.level {
		w.level = want
		a.rewatch(w)
	}
	if d.Count && w.waits == nil {
		w.waits = openWaitCounter(w.TID)
	}
	if !d.Count && w.waits != nil && d.Verdict == judge.Healthy {
		w.waits.close()
		w.waits = nil
	}
}

// settles says that the worker has been busy for long, and that the last look
// at its stack found it with another request than the one before.
func (w *worker) settles() bool { return w.last.Now-w.busyFrom >= settleAfter && w.varied.other }

// startedAt converts a start in clock ticks since boot into wall time.
func startedAt(ticks uint64, c clock) time.Time {
	// The kernel counts in units of 1/100 s here on every architecture.
	sinceBoot := time.Duration(ticks) * (time.Second / 100)
	return c.wall().Add(sinceBoot - c.boot())
}
