package watchdog

import (
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/watchdog/classes"
	"github.com/spinguard/spinguard/web/api"
)

// classesMax bounds the classes that are counted, classesShown those that are
// shown.
const (
	classesMax   = 512
	classesShown = 50
)

// account charges the CPU time of samples to the class of their request. Not
// every sample is understood: one that is stands for those before it, too.
func (a *Agent) account(w *worker, s bpf.Sample) {
	cpu := w.unclassed
	w.unclassed = 0
	if !w.hasReq && !w.crumb.Active && w.context.Backend == "" {
		return // the worker's own work
	}
	k := w.class()
	a.classes.Add(k, cpu)
	a.metrics.AddRequestCPU(k.Proxy, k.Upstream, cpu)
	if limit := a.cfg.RequestBudget.CPU; limit > 0 && w.hasReq {
		if used, over := w.budget.Charge(identity(mainRequest(w.process.Memory(), w.request)), s.Weight, limit); over {
			a.overBudget(w, k, used)
		}
	}
}

// overEvery bounds the lines about requests of one worker over their budget.
const overEvery = time.Second

func (w *worker) class() classes.Key {
	k := classes.Key{Proxy: w.in.Name, Upstream: w.context.Backend, Phase: phaseOf(w.result.Stack)}
	if w.hasReq {
		k.Upstream, k.Route = w.request.Upstream.Name, w.request.Method+" "+classes.Template(w.request.Path)
	}
	if w.crumb.Active {
		k.Upstream, k.Phase = w.crumb.Upstream, w.crumb.Phase
	}
	return k
}

// phaseOf reads the phase off the name that ngx_lua gives to the handler's
// chunk, such as "access_by_lua(nginx.conf:12)".
func phaseOf(s stack.Stack) string {
	for _, f := range s.Frames {
		if f.Kind != stack.Lua && f.Kind != stack.Trace {
			continue
		}
		if phase, _, ok := strings.Cut(f.File, "_by_lua"); ok {
			return strings.TrimLeft(phase, "=@")
		}
	}
	return ""
}

func (a *Agent) overBudget(w *worker, k classes.Key, used time.Duration) {
	a.classes.Over(k)
	a.offend(w, k)
	now := a.clock.mono()
	if w.overAt != 0 && now-w.overAt < overEvery {
		return // counted, but a flood of lines would tell nothing more
	}
	w.overAt = now
	request := w.request.Line(a.cfg.ShowQueries)
	frames := places(w.result.Stack)
	a.log.Warn("request over its CPU budget", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.String("request", request),
		zap.String("upstream", k.Upstream), zap.Duration("used", used), zap.Duration("budget", a.cfg.RequestBudget.CPU), zap.Strings("frames", frames))
	a.tell("over_budget", w, "", request+" used "+used.String()+" of CPU")
}

func (a *Agent) classViews() []api.Class {
	top := a.classes.Top(classesShown)
	list := make([]api.Class, 0, len(top))
	for _, e := range top {
		list = append(list, api.Class{Proxy: e.Proxy, Upstream: e.Upstream, Route: e.Route, Phase: e.Phase, CPUSeconds: e.CPU.Seconds(), Samples: e.Samples, OverBudget: e.Over})
	}
	return list
}

// Classes implements web.Source.
func (a *Agent) Classes() []api.Class { return a.read().classes }
