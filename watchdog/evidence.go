package watchdog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spinguard/spinguard/incident"
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
		ev.Frames[ev.Hot] = frameWithLines(ev.Stack[ev.Hot], lines)
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

// stackPatience is how long a verdict waits for the stack of a worker that
// sleeps for moments only, and is awake whenever it is looked at.
const stackPatience = 500 * time.Millisecond

// blockedStack takes the stack of a worker that sleeps: it is in no sample. It
// says no if the worker was awake then, and may be found asleep later.
func (a *Agent) blockedStack(w *worker) bool {
	if w.decision.Verdict != judge.Blocked && w.decision.Verdict != judge.LockVictim {
		return true
	}
	taken := w.look.SP != 0
	if taken {
		r := w.process.Blocked(w.look.SP, w.look.PC)
		w.process.Release()
		var request proxy.Request
		hasReq := false
		if w.Kind == proxy.Nginx {
			request, hasReq = w.requests.Find(w.process.Memory(), w.liveStack(w.look.SP), r.Request)
		}
		now, err := w.looker.Look()
		if taken = err == nil && sameSleep(w.look, now, r); taken {
			w.result, w.request, w.hasReq = r, request, hasReq
			w.keep(sampled{when: w.last.Now, result: r, labels: w.labels(a.cfg.ShowQueries), request: w.request, hasReq: w.hasReq})
		}
	}
	return taken || w.stackLate(w.last.Now)
}

// sameSleep says that a stack is that of a worker's sleep: it did not run
// meanwhile, or it ran, sleeps in the same place again, and the stack is whole.
// Who polls with a sleep of milliseconds is awake again before a stack is read.
func sameSleep(before, after proxy.Look, r profiler.Result) bool {
	return after.SP == before.SP && after.PC == before.PC &&
		(after.Slices == before.Slices || r.Stack.Truncated == "" && len(r.Stack.Frames) > 0)
}

// stackLate says that the stack of a worker was waited for long enough.
func (w *worker) stackLate(now time.Duration) bool {
	if w.stackDue == 0 {
		w.stackDue = now + stackPatience
	}
	return now >= w.stackDue
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
