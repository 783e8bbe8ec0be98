package watchdog

import (
	"fmt"
	"hash/maphash"
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

// takeSample judges one sample. It says whether something must be done at once.
func (a *Agent) takeSample(s bpf.Sample) bool {
	w := a.workers[s.TID]
	if w == nil || w.PID != s.PID {
		return false
	}
	a.readCrumb(w, s.Crumb)
	o := judge.Observation{
		Now: s.When, CPUTime: s.CPUTime, Weight: s.Weight, Voluntary: s.Voluntary,
		Progress: s.Progress, ProgressOK: s.ProgressOK,
		InWait:   s.InKernel && w.inWait(s.Syscall),
		Starting: w.starting(), LockOwner: w.lockOwner, SelfOwned: w.lockOwner == w.PID,
		Picks: uint64(w.crumb.Sequence), Proven: w.crumb.Active,
	}
	if s.Full && a.worthwhile(w, s) {
		a.understand(w, s, &o)
	}
	return a.judge(w, o)
}

// worthwhile says whether a sample with windows is worth the work: always when
// the worker is in doubt, else at the rate of the flight recorder.
func (a *Agent) worthwhile(w *worker, s bpf.Sample) bool {
	return w.level != calm || w.decision.Stall > 0 || a.recorder.Wants(w.recorded(), s.When, s.Weight)
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
	r := w.process.Understand(s)
	w.result = r
	o.Activity = r.Lower()
	window := procmem.Window{Addr: s.Stack.Addr, Data: s.Stack.Data}
	memory := overlay(s, w.process.Memory())
	w.request, w.hasReq = proxy.Request{}, false
	if w.Kind == proxy.Nginx {
		w.request, w.hasReq = w.requests.Find(memory, window, r.Request)
	}
	if w.streams != nil {
		w.context = w.streams.Context(memory, window, s.Registers[:]...)
	}
	if w.hasReq {
		o.Request, o.Motion = identity(w.request.RequestID), motion(memory, w.request.Conn)
	}
	w.lockOwner = a.spinOwner(w, s, r.Stack.Frames, memory)
	o.LockOwner, o.SelfOwned = w.lockOwner, w.lockOwner == w.PID
	labels := w.labels(a.cfg.ShowQueries)
	a.recorder.Add(w.recorded(), s.When, r, s.Weight, labels)
	w.keep(sampled{when: s.When, weight: s.Weight, result: r, labels: labels, request: w.request, hasReq: w.hasReq})
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

// overlay reads what the sampler copied first, and the live memory for the rest.
func overlay(s bpf.Sample, live procmem.Memory) procmem.Memory {
	o := procmem.Overlay{Under: live}
	for _, w := range []bpf.Window{s.Stack, s.LuaStack, s.LuaState, s.LuaGlobal} {
		if len(w.Data) > 0 {
			o.Windows = append(o.Windows, procmem.Window{Addr: w.Addr, Data: w.Data})
		}
	}
	return o
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

// lookAtAll looks at every worker from outside: what sleeps is in no sample.
func (a *Agent) lookAtAll(now time.Duration) {
	for _, w := range a.workers {
		a.lookAt(w, now)
	}
}

func (a *Agent) lookAt(w *worker, now time.Duration) {
	look, err := w.lookOnce(now)
	if err != nil {
		return // it ended; the scan will say so
	}
	w.look = look
	w.showShare(look, now)
	o := judge.Observation{
		Now: now, CPUTime: look.CPUTime, Voluntary: max(look.Voluntary, w.last.Voluntary),
		InWait: look.InEventWait, Asleep: asleep(look), Stopped: look.Stopped || look.State == 't' || look.Frozen,
		Starting: w.starting(), Picks: uint64(w.crumb.Sequence), Proven: w.crumb.Active, RunDelay: look.RunDelay, Throttled: look.Throttled,
	}
	if look.InEventWait {
		w.serves = w.Started
	} else {
		a.lookCloser(w, look, &o)
	}
	a.judge(w, o)
}

// lookOnce reads as little as possible, and all of it once a second of a
// worker that does not rest: whether a quota holds it back.
func (w *worker) lookOnce(now time.Duration) (proxy.Look, error) {
	if !w.look.InEventWait && now-w.lookedClosely >= time.Second {
		w.lookedClosely = now
		return w.looker.LookClosely()
	}
	return w.looker.Look()
}

// lookCloser reads what only a worker outside of its event wait needs.
func (a *Agent) lookCloser(w *worker, look proxy.Look, o *judge.Observation) {
	o.Progress, o.ProgressOK = w.readProgress()
	if w.slot != 0 {
		var slot [balancer.CrumbSize]byte
		if w.process.Memory().ReadMemory(w.slot, slot[:]) == nil {
			a.readCrumb(w, slot[:])
			o.Picks, o.Proven = uint64(w.crumb.Sequence), w.crumb.Active
		}
	}
	if asleep(look) {
		w.wait = proxy.DescribeWait(w.process.Memory(), w.PID, look)
		o.Waiting = w.wait.Text
		w.lockOwner = a.siblingOf(w, w.wait.LockOwner)
	}
	o.LockOwner, o.SelfOwned = w.lockOwner, w.lockOwner == w.PID
}

// asleep says that the thread sleeps, outside of its event wait.
func asleep(look proxy.Look) bool {
	return look.Detailed && (look.State == 'S' || look.State == 'D')
}

func (w *worker) readProgress() (uint64, bool) {
	switch w.Progress.Size {
	case 8:
		v, err := procmem.Uint64(w.process.Memory(), w.Progress.Addr)
		return v, err == nil
	case 4:
		v, err := procmem.Uint32(w.process.Memory(), w.Progress.Addr)
		return uint64(v), err == nil
	}
	return 0, false
}

// showShare updates the CPU share that pages show, about once a second.
func (w *worker) showShare(look proxy.Look, now time.Duration) {
	if wall := now - w.shareFrom; wall >= time.Second {
		if w.shareFrom > 0 {
			w.share = float64(look.CPUTime-w.shareCPU) / float64(wall)
		}
		w.shareFrom, w.shareCPU = now, look.CPUTime
	}
}

// judge passes an observation to the judge and follows its decision. It says
// whether something must be done at once.
func (a *Agent) judge(w *worker, o judge.Observation) bool {
	o.EventWaits, o.Counting = w.waits.read()
	moved := o.ProgressOK && w.last.ProgressOK && o.Progress != w.last.Progress
	if moved && w.Started {
		w.serves = true
	}
	var d judge.Decision
	w.judge, d = judge.Judge(w.judge, o, a.limits())
	w.last, w.decision = o, d
	if d.Ended >= a.cfg.Thresholds.Suspect {
		a.stallEnded(w, d)
	}
	if d.Changed() {
		a.transition(w, d)
	}
	a.follow(w, d)
	if d.Verdict.Stuck() && w.episode == nil {
		a.confirm(w)
		return true
	}
	return false
}

func (a *Agent) limits() judge.Limits {
	t := a.cfg.Thresholds
	return judge.Limits{Suspect: t.Suspect, Runaway: t.Runaway, Blocked: t.Blocked, Window: t.Spinning, Young: t.Young, Turn: turnLimit}
}

// turnLimit is how much CPU time one turn of the loop may spend on timers alone.
const turnLimit = 2 * time.Second

// transition notes a changed verdict: one line each.
func (a *Agent) transition(w *worker, d judge.Decision) {
	bad := d.Verdict == judge.Suspect || d.Verdict.Stuck()
	switch {
	case bad && w.suspectedAt == 0:
		if d.Verdict != judge.Spinning {
			w.recent = nil // what it did before is in the flight recorder
		}
		w.suspectedAt, w.cpuAt, w.delayAt = w.last.Now, w.last.CPUTime, w.look.RunDelay
		w.dropped = 0
	case !bad:
		w.suspectedAt, w.recent = 0, nil
	}
	log := a.log.Info
	if d.Verdict.Stuck() {
		log = a.log.Warn
	}
	log("verdict", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.Int("tid", w.TID),
		zap.String("verdict", string(d.Verdict)), zap.String("before", string(d.Before)), zap.String("reason", d.Reason))
	a.tell("verdict", w, "", fmt.Sprintf("%s: %s", d.Verdict, d.Reason))
}

// stallEnded writes a line of the stall log: a standstill that ended by
// itself, with its request, place and length.
func (a *Agent) stallEnded(w *worker, d judge.Decision) {
	a.metrics.ObserveStall(w.in.Name, d.Ended)
	request := ""
	var frames []string
	if n := len(w.recent); n > 0 {
		request = w.recent[n-1].labels.Request
		frames = places(w.recent[n-1].result.Stack)
	}
	a.log.Info("stall", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.Time("at", a.clock.wallAt(w.last.Now)),
		zap.Int64("ms", d.Ended.Milliseconds()), zap.Int64("wall_ms", d.Over.Milliseconds()), zap.String("request", request), zap.Strings("frames", frames))
}

// places lists the frames of a stack, leaf first.
func places(s stack.Stack) []string {
	list := make([]string, 0, len(s.Frames))
	for _, f := range s.Frames {
		list = append(list, f.Function+" ("+f.Place()+")")
	}
	return list
}
