package watchdog

import (
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/proxy"
)

// found is what the finder has found.
type found struct {
	proxies []proxy.Proxy
	err     error
}

// find looks for proxies; the first time it takes what the start has found.
func (a *Agent) find() ([]proxy.Proxy, error) {
	first := a.found
	if a.found = (found{}); first.proxies != nil {
		return first.proxies, first.err
	}
	return a.finder.Scan()
}

// scan brings the lists of proxies and workers up to date.
func (a *Agent) scan() {
	found, err := a.find()
	if err != nil {
		// The finder goes on with what it could read; processes die while
		// they are looked at.
		a.log.Debug("scan was incomplete", zap.Error(err))
	}
	a.readLostRing()
	a.sampleNew(found)
	seen := map[int]bool{}
	for _, p := range found {
		if !a.wanted(p) {
			continue
		}
		in := a.instanceOf(p)
		for _, info := range p.Workers {
			seen[info.TID] = true
			a.meet(in, info)
		}
	}
	for tid, w := range a.workers {
		if !seen[tid] || !w.process.Alive() {
			a.lose(w)
		}
	}
	a.dropInstances(found)
	a.images.Expire(imagesFor)
}

// sampleNew has all new workers sampled before any of them is looked at
// closely, which takes longer. Of Lua nothing is copied yet.
func (a *Agent) sampleNew(found []proxy.Proxy) {
	if a.sampler == nil {
		return
	}
	for _, p := range found {
		if !a.wanted(p) {
			continue
		}
		for _, w := range p.Workers {
			if a.workers[w.TID] == nil {
				// What fails here is tried again, and told, when it is attached.
				_ = a.sampler.Watch(bpf.Watch{PID: w.PID, TID: w.TID, ProgressAddr: w.Progress.Addr, ProgressSize: w.Progress.Size})
			}
		}
	}
}

// wanted says whether the configuration wants this proxy to be watched. The
// master of a binary upgrade inherits that from the one that started it, which
// may have ended since the last scan.
func (a *Agent) wanted(p proxy.Proxy) bool {
	asked := func(pid int) bool { return slices.Contains(a.cfg.Masters, pid) || slices.Contains(a.heirs, pid) }
	if len(a.cfg.Masters) == 0 || asked(p.Master) {
		return true
	}
	if p.Starter == 0 || !asked(p.Starter) {
		return false
	}
	a.heirs = append(a.heirs, p.Master)
	return true
}

func (a *Agent) instanceOf(p proxy.Proxy) *instance {
	in := a.instances[p.ID]
	if in == nil {
		in = &instance{upstreams: map[string]bool{}}
		a.instances[p.ID] = in
		a.log.Info("proxy appeared", zap.String("proxy", p.Name), zap.String("version", p.Version), zap.Int("master", p.Master), zap.String("exe", p.Exe))
	}
	in.Proxy = p
	return in
}

// meet takes in what the scan says of one worker.
func (a *Agent) meet(in *instance, info proxy.Worker) {
	w := a.workers[info.TID]
	if w != nil && (w.StartTime != info.StartTime || w.PID != info.PID) {
		a.lose(w)
		w = nil
	}
	if w == nil {
		err := a.attach(in, info)
		if err != nil && a.sampler != nil {
			_ = a.sampler.Unwatch(info.TID)
		}
		if err != nil && !errors.Is(err, procmem.ErrGone) {
			a.log.Warn("worker can't be watched", zap.Int("pid", info.PID), zap.Error(err))
		}
		return
	}
	w.Exiting, w.Started, w.in = info.Exiting, info.Started, in
	w.forgetOld(a.clock.mono())
	if w.lossesAt != a.counters.LostRing {
		w.lossesAt = a.counters.LostRing
		a.losses(w) // into the flight recorder
	}
	if w.slot == 0 {
		a.findFiles(w)
	}
	if lua := w.process.LuaWatch(); lua != w.watch.Lua {
		w.watch.Lua = lua
		a.rewatch(w)
	}
}

// lose forgets a worker that has ended.
func (a *Agent) lose(w *worker) {
	a.log.Info("worker is gone", zap.String("proxy", w.in.Name), zap.Int("pid", w.PID), zap.Int("tid", w.TID))
	if w.episode != nil {
		w.episode.lost(w)
	} else if stall := w.decision.Stall; stall >= a.cfg.Thresholds.Suspect {
		a.metrics.ObserveStall(w.in.Name, stall)
	}
	a.detach(w)
}

// dropInstances forgets proxies without processes.
func (a *Agent) dropInstances(found []proxy.Proxy) {
	for id, in := range a.instances {
		if !slices.ContainsFunc(found, func(p proxy.Proxy) bool { return p.ID == id }) {
			a.log.Info("proxy is gone", zap.String("proxy", in.Name), zap.Int("master", in.Master))
			in.close()
			delete(a.instances, id)
		}
	}
}
