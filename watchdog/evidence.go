package watchdog

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/pprof/profile"
	"go.uber.org/zap"

	"github.com/spinguard/spinguard/flamegraph"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/notify"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// describe fills in what is known of the worker that the incident is about.
func (a *Agent) describe(e *episode, w *worker) {
	e.told = w.PID
	ev := &e.inc.Evidence
	best, lines := representative(w)
	result := best.result
	ev.SetStack(result.Stack, hotFrame(result.Stack))
	if ev.Lines = lines; len(lines) > 1 {
		ev.Frames[ev.Hot] = frameWithLines(ev.Stack[ev.Hot].Function, lines)
	}
	ev.Upstream, ev.Version, ev.Digest = e.culprit.Upstream, e.culprit.Version, e.digest
	if w.crumb.Active {
		ev.Phase = w.crumb.Phase
	}
	if best.hasReq {
		ev.Request, ev.Host = best.request.Line(a.cfg.ShowQueries), best.request.Host
		ev.Upstream = cmp.Or(ev.Upstream, best.request.Upstream.Name)
		ev.Peer = w.peerTried(best)
	}
	if c := w.context; c.Frontend != "" || c.Backend != "" {
		ev.Upstream, ev.Peer = cmp.Or(ev.Upstream, c.Backend), cmp.Or(ev.Peer, c.Server)
		e.noteOnce(a.now(e), fmt.Sprintf("frontend %q, backend %q, server %q", c.Frontend, c.Backend, c.Server))
	}
	if w.Kind == proxy.HAProxy {
		if _, _, why := w.serverOf(); why != "" {
			e.noteOnce(a.now(e), "no quarantine: "+why)
		}
	}
	if peer, weight := badPeer(result.Stack, w.process); peer != "" {
		ev.Peer = peer
		e.noteOnce(a.now(e), fmt.Sprintf("peer %s has the weight %s", peer, weight))
	}
	a.keptAwake(e, w)
	a.changed(e, w)
	e.inc.Numbers = numbers(w)
	if w.decision.Verdict == judge.Blocked {
		e.inc.Blocked = &incident.Blocked{Syscall: w.wait.Text, Target: cmp.Or(w.wait.Peer, w.wait.Path, w.wait.Command), State: string(rune(w.look.State))}
		ev.Peer = cmp.Or(w.wait.Peer, ev.Peer)
	}
}

// peerTried returns the peer of the request that a sample shows. Between two
// tries there is none: then another sample of the same request tells.
func (w *worker) peerTried(best sampled) string {
	if best.request.Upstream.Peer != "" {
		return best.request.Upstream.Peer
	}
	for _, s := range slices.Backward(w.recent) {
		if s.hasReq && s.request.RequestID == best.request.RequestID && s.request.Upstream.Peer != "" {
			return s.request.Upstream.Peer
		}
	}
	return ""
}

func numbers(w *worker) incident.Numbers {
	n := incident.Numbers{
		StallMS: w.decision.Stall.Milliseconds(), CPUMS: (w.last.CPUTime - w.cpuAt).Milliseconds(),
		RunDelayMS: (w.look.RunDelay - w.delayAt).Milliseconds(), Throttled: w.look.Throttled.Milliseconds(),
		Voluntary: int64(w.last.Voluntary),
	}
	if wall := w.last.Now - w.suspectedAt; w.suspectedAt != 0 && wall > 0 {
		n.CPUShare = min(1, float64(w.last.CPUTime-w.cpuAt)/float64(wall))
	}
	return n
}

// hotFrame is the frame to blame: the innermost Lua function, else the first
// one that has a name.
func hotFrame(s stack.Stack) int {
	for i, f := range s.Frames {
		if f.Kind == stack.Lua || f.Kind == stack.Trace {
			return i
		}
	}
	return 0
}

// blockedStack takes the stack of a worker that sleeps: it is in no sample.
func (a *Agent) blockedStack(w *worker) {
	if w.decision.Verdict != judge.Blocked && w.decision.Verdict != judge.LockVictim {
		return
	}
	if w.look.SP == 0 {
		return
	}
	r := w.process.Blocked(w.look.SP, w.look.PC)
	w.result = r
	if w.Kind == proxy.Nginx {
		w.request, w.hasReq = w.requests.Find(w.process.Memory(), w.liveStack(w.look.SP), r.Request)
	}
	w.keep(sampled{when: w.last.Now, result: r, labels: w.labels(a.cfg.ShowQueries), request: w.request, hasReq: w.hasReq})
}

// liveStackMax bounds how much of a sleeping worker's stack is searched.
const liveStackMax = 64 << 10

// liveStack copies the stack of a sleeping worker from its stack pointer up.
func (w *worker) liveStack(sp uint64) procmem.Window {
	end := w.process.StackEnd(sp)
	if end <= sp {
		return procmem.Window{Addr: sp}
	}
	data := make([]byte, min(end-sp, liveStackMax))
	if w.process.Memory().ReadMemory(sp, data) != nil {
		return procmem.Window{Addr: sp}
	}
	return procmem.Window{Addr: sp, Data: data}
}

// capture writes the evidence of an incident to disk: the whole folder.
func (a *Agent) capture(e *episode) error {
	files := map[string][]byte{}
	main := e.mainMember()
	if main == nil || main.w == nil {
		return a.store.Create(&e.inc, files)
	}
	w := main.w
	since := w.stallFrom
	if w.suspectedAt == 0 {
		since = w.last.Now - time.Second
	}
	b := profiler.NewBuilder(a.clock.wallAt(since), time.Second/time.Duration(a.cfg.Sampling.Burst))
	b.SetDuration(w.last.Now - since)
	for _, m := range e.members {
		if m.w != nil {
			m.w.fill(b, string(m.verdict))
			a.lossesSince(m.w).count(b, m.w)
		}
	}
	a.lossesSince(w).countUnreadable(b)
	now, err := b.Profile()
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	e.inc.Samples = account(b, a.cfg.Sampling.Burst)
	a.addProfile(files, now)
	a.exporter.Push(&e.inc, files[incident.ProfileFile], a.clock.wall())
	a.addComparison(files, w, since, now)
	return a.store.Create(&e.inc, files)
}

// fill adds the samples of a suspicion to a profile.
func (w *worker) fill(b *profiler.Builder, verdict string) {
	for _, s := range w.recent {
		labels := s.labels
		labels.Verdict = verdict
		weight := s.weight
		if weight == 0 {
			weight = time.Millisecond // a look: it stands for no CPU time, but must be seen
		}
		b.Add(s.result, weight, labels)
	}
	b.Lost("not kept", uint64(w.dropped))
	b.Lost("stack not copied", uint64(w.blind))
}

func (a *Agent) addProfile(files map[string][]byte, p *profile.Profile) {
	a.addPacked(files, incident.ProfileFile, p)
	if svg, err := draw(p, nil, "Stuck"); err != nil {
		a.log.Error("flame graph could not be drawn", zap.Error(err))
	} else {
		files[incident.FlameFile] = svg
	}
}

// draw renders a profile, or its difference to a base.
func draw(now, base *profile.Profile, title string) ([]byte, error) {
	p, err := flamegraph.FromPprof(now, title, "")
	if err != nil {
		return nil, err
	}
	if base != nil {
		before, err := flamegraph.FromPprof(base, "before", "")
		if err != nil {
			return nil, err
		}
		if p, err = flamegraph.Diff(before, p); err != nil {
			return nil, err
		}
	}
	var svg bytes.Buffer
	if _, err := flamegraph.WriteSVG(&svg, p, flamegraph.SVGOptions{Title: title}); err != nil {
		return nil, err
	}
	return svg.Bytes(), nil
}

// captured carries out the first action of a response.
func (a *Agent) captured(e *episode) {
	if main := e.mainMember(); main != nil && main.w != nil && e.told != main.pid {
		a.describe(e, main.w)
	}
	now := a.now(e)
	e.inc.Timeline.Captured = incident.MS(e.inc.Began, now)
	e.note(now, "captured", "evidence is on disk")
	e.inc.Rails = a.rails.Status(a.clock.wall())
	a.addSignals(e)
	if err := a.capture(e); err != nil {
		// Without a disk the worker is still stuck: the response goes on with
		// the evidence in memory, and in the log.
		a.log.Error("evidence could not be written; going on with what is in memory", zap.String("incident", e.inc.ID), zap.Error(err),
			zap.Strings("frames", e.inc.Evidence.Frames), zap.String("request", e.inc.Evidence.Request))
		e.note(now, "note", "evidence could not be written: "+err.Error())
		e.inc.Timeline.Captured = nil
	}
	e.written = true
	a.announce(notify.Opened, &e.inc)
	a.log.Warn("evidence captured", zap.String("incident", e.inc.ID), zap.String("folder", a.store.Path(e.inc.ID)),
		zap.Strings("frames", e.inc.Evidence.Frames[:min(6, len(e.inc.Evidence.Frames))]), zap.String("request", e.inc.Evidence.Request),
		zap.String("upstream", e.inc.Evidence.Upstream), zap.String("version", e.inc.Evidence.Version),
		zap.Any("samples", maps.Clone(e.inc.Samples.Lost)))
}
