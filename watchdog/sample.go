package watchdog

import (
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// readSamples takes in the samples of so long a time from now on: those of it
// that came without a wake-up are read at its end, before anything is looked at.
func (a *Agent) readSamples(wait time.Duration) error {
	deadline, end := a.clock.wall().Add(wait), a.clock.mono()+wait
	if a.sampler == nil {
		time.Sleep(time.Until(deadline))
		return nil
	}
	most := lateMost
	if a.alarmed() {
		most = 1 // the response must not wait
	}
	for late := 0; !a.writer.news.Load(); {
		s, err := a.sampler.ReadHead(deadline)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case errors.Is(err, os.ErrClosed):
			return err
		case err != nil:
			a.unreadable++
			continue
		}
		urgent := a.takeSample(s)
		if a.clock.wall().After(deadline) {
			late++
		}
		if urgent || late >= most || late > 0 && s.When > end {
			return nil
		}
	}
	return nil
}

// lateMost bounds the samples that are read after the end of their time.
const lateMost = 64

// pause is how long the loop may wait for samples.
func (a *Agent) pause() time.Duration {
	if a.alarmed() {
		return alarmEvery
	}
	for _, w := range a.workers {
		if w.level == busy {
			return busyEvery
		}
	}
	return lookEvery
}

// takeSample judges one sample. It says whether something must be done at once.
func (a *Agent) takeSample(s bpf.Sample) bool {
	w := a.workers[s.TID]
	if w == nil || w.PID != s.PID {
		return false
	}
	if !a.sampled {
		a.sampled = true
		a.log.Info("first sample", zap.Int("pid", s.PID), zap.Int64("monotonic_ns", int64(s.When)))
	}
	a.readCrumb(w, s.Crumb)
	w.unclassed += s.Weight
	o := judge.Observation{
		Now: s.When, CPUTime: s.CPUTime, Weight: s.Weight, Voluntary: s.Voluntary, RunDelay: s.RunDelay,
		Progress: s.Progress, ProgressOK: s.ProgressOK,
		InWait:   s.InKernel && w.inWait(s.Syscall),
		Starting: w.starting(), LockOwner: w.lockOwner, SelfOwned: w.lockOwner == w.PID,
		Picks: uint64(w.crumb.Sequence), Proven: w.crumb.Active, Condemned: a.condemned(w),
	}
	o.TurnFrom = w.turnFrom(&o)
	switch {
	case !s.Full || a.thin(w, s):
		a.recorder.Skip(w.recorded(), s.When, s.Weight)
		w.unseen()
		o.Unseen = true
	case a.worthwhile(w, s):
		if s.Load() != nil {
			a.unreadable++
			return false
		}
		a.understand(w, s, &o)
		w.process.Release()
		w.varied.add(o)
	default:
		o.Unseen = true
	}
	return a.judge(w, o)
}

// thin says that the sample of a busy worker needs no look at its stack: its
// loop has turned since the last sample, it was looked at a moment ago, and
// worked on another request then than the time before. Who does one thing, or
// nothing that is known, is looked at each time.
func (a *Agent) thin(w *worker, s bpf.Sample) bool {
	every := thinEvery
	if w.level == settled {
		every = settledEvery
	}
	return (w.level == busy || w.level == settled) && a.cfg.RequestBudget.CPU == 0 && w.varied.other && s.When-w.varied.when < every &&
		s.ProgressOK && w.wordOK && s.Progress != w.word
}

// Both leave the judge enough of a window.
const (
	thinEvery    = 100 * time.Millisecond
	settledEvery = 350 * time.Millisecond
)

// varied remembers what the last look at a stack has shown.
type varied struct {
	when    time.Duration
	request uint64 // 0: none
	other   bool   // than the time before, both known, and with the handler
	same    bool   // as the time before
}

func (v *varied) add(o judge.Observation) {
	*v = varied{when: o.Now, request: o.Request,
		other: o.Activity != 0 && o.Request != 0 && v.request != 0 && o.Request != v.request,
		same:  o.Request != 0 && o.Request == v.request}
}

// worthwhile says whether a sample with windows is worth the work: always when
// the worker is in doubt, else at the rate of the flight recorder. That may be
// low where many workers are busy; one that seems to be at the same request all
// the time is looked at as often as if it were alone.
func (a *Agent) worthwhile(w *worker, s bpf.Sample) bool {
	lingers := w.varied.same && s.When-w.varied.when >= time.Second/recorderRate
	return w.level != calm || a.cfg.RequestBudget.CPU > 0 || w.decision.Stall > 0 || lingers || a.recorder.Wants(w.recorded(), s.When, s.Weight)
}

func (w *worker) recorded() profiler.Worker {
	return profiler.Worker{Proxy: w.in.Name, PID: w.PID, TID: w.TID}
}

// inWait says whether the number is a system call in which the worker's event
// loop waits.
func (w *worker) inWait(syscall int64) bool {
	return syscall >= 0 && w.looker.EventWait(syscall)
}

// starting says that the worker has not finished its start-up: it has not got
// its title yet, or was never seen to turn its loop.
func (w *worker) starting() bool { return !w.Started && !w.serves }

// understand finds stack, request and handler of a sample.
func (a *Agent) understand(w *worker, s bpf.Sample, o *judge.Observation) {
	glance := w.level <= busy && !doubtful(w.decision) // nobody will ask for values
	look := w.process.Understand
	if glance {
		look = w.process.Glance
	}
	r := look(s)
	w.result = r
	a.placeStack(w, s)
	o.Activity = r.Lower()
	window := procmem.Window{Addr: s.Stack.Addr, Data: s.Stack.Data}
	memory := w.process.Instant()
	w.request, w.hasReq = proxy.Request{}, false
	if w.Kind == proxy.Nginx {
		w.request, w.hasReq = w.requests.Find(memory, window, r.Request)
	}
	if w.streams != nil {
		w.context = w.streams.Context(memory, window, s.Registers[:]...)
	}
	if w.hasReq {
		o.Request, o.Motion = identity(mainRequest(memory, w.request)), motion(memory, w.request.Conn)
	}
	w.lockOwner = a.spinOwner(w, s, r.Stack.Frames, memory)
	o.LockOwner, o.SelfOwned = w.lockOwner, w.lockOwner == w.PID
	labels := w.labels(a.cfg.ShowQueries)
	a.recorder.Add(w.recorded(), s.When, r, s.Weight, labels)
	a.account(w, s)
	w.keep(sampled{when: s.When, weight: s.Weight, result: r, labels: labels, glanced: glance, request: w.request, hasReq: w.hasReq})
}

// doubtful says that the worker may be stuck: what it does with which values
// may be asked for. One that is looked at closely only because it is busy is not.
func doubtful(d judge.Decision) bool {
	return d.Stall > 0 || d.Count || d.Verdict == judge.Suspect || d.Verdict.Stuck()
}

// placeStack tells the sampler where the stack of a thread ends, which only its
// stack pointer shows. The end of a process's first stack is known to the kernel.
func (a *Agent) placeStack(w *worker, s bpf.Sample) {
	if w.TID == w.PID || w.watch.Switches || w.watch.StackEnd != 0 {
		return
	}
	if w.watch.StackEnd = w.process.StackEnd(s.Registers[stack.RSP]); w.watch.StackEnd != 0 {
		a.rewatch(w)
	}
}

// unseen counts a sample of a suspected worker that no profile will show.
func (w *worker) unseen() {
	if w.suspectedAt != 0 {
		w.blind++
	}
}

// recentFor is how long the samples are kept of a worker that nobody suspects.
// Of a worker that hardly ever runs they would else be kept for hours.
const recentFor = 30 * time.Second

// forgetOld drops the samples that nobody will ask for.
func (w *worker) forgetOld(now time.Duration) {
	if w.suspectedAt != 0 {
		return
	}
	if w.forgetBefore(now - recentFor); len(w.recent) == 0 {
		w.recent = nil
	}
}

// keep adds a sample to those that an incident would show.
func (w *worker) keep(s sampled) {
	switch {
	case w.suspectedAt == 0 && len(w.recent) >= recentCalm:
		copy(w.recent, w.recent[1:])
		w.recent[len(w.recent)-1] = s
	case len(w.recent) < recentMax:
		w.recent = append(w.recent, s)
	default:
		w.dropped++
	}
}

var identitySeed = maphash.MakeSeed()

// identity folds what tells requests apart into one word, never 0.
func identity(id proxy.RequestID) uint64 {
	return maphash.Comparable(identitySeed, id) | 1
}

// mainRequest identifies the request that a client waits for: subrequests come
// and go without an end of it.
func mainRequest(memory procmem.Memory, r proxy.Request) proxy.RequestID {
	if !r.Subrequest {
		return r.RequestID
	}
	if id, ok := proxy.IdentifyRequest(memory, procmem.Window{}, r.Main); ok {
		return id
	}
	return proxy.RequestID{Addr: r.Main, Conn: r.Conn}
}

// motion changes when the client's connection does: its counters and flags
// move with every byte sent or received.
func motion(memory procmem.Memory, connection uint64) uint64 {
	var b [128]byte
	if memory.ReadMemory(connection, b[:]) != nil {
		return 0
	}
	return maphash.Bytes(identitySeed, b[:])
}

func (w *worker) labels(showQueries bool) profiler.Labels {
	l := profiler.Labels{Proxy: w.in.Name, Worker: fmt.Sprint(w.PID), Verdict: string(w.decision.Verdict)}
	if w.TID != w.PID {
		l.Worker += fmt.Sprint("/", w.TID)
	}
	if w.hasReq {
		l.Request, l.Upstream = w.request.Line(showQueries), w.request.Upstream.Name
	}
	if w.crumb.Active {
		l.Upstream, l.Version = w.crumb.Upstream, fmt.Sprint(w.crumb.Version)
	}
	return l
}

// readCrumb takes in a copied crumb slot. The slot is the worker's word, and
// may be anything.
func (a *Agent) readCrumb(w *worker, slot []byte) {
	if len(slot) == 0 {
		return
	}
	c, err := balancer.ParseCrumb(slot)
	if err != nil || c.PID != w.nspid {
		w.crumb = balancer.Crumb{}
		return
	}
	w.crumb = c
	w.in.learn(c.Upstream) // an idle crumb names the last one picked for
}
