package watchdog

import (
	"bytes"
	"time"

	"github.com/google/pprof/profile"
	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
)

// baselineFor is how far back the profiles reach that evidence is compared with.
const baselineFor = 30 * time.Second

// addComparison adds what the stuck worker did before and what its siblings
// do, and the picture of what is new against the first; against the siblings
// where a worker was idle before.
func (a *Agent) addComparison(files map[string][]byte, e *episode, w *worker, since time.Duration, now *profile.Profile) {
	own := a.before(profiler.Only(w.recorded()), since, since)
	siblings := a.before(e.healthySiblings(w), since, w.last.Now)
	a.addPacked(files, incident.BaselineFile, own)
	a.addPacked(files, incident.SiblingsFile, siblings)
	base, title := own, "Stuck, against its own 30 s before"
	if base == nil {
		base, title = siblings, "Stuck, against its siblings"
	}
	if base == nil {
		return
	}
	svg, err := draw(now, base, title)
	if err != nil {
		a.log.Error("difference could not be drawn", zap.Error(err))
		return
	}
	files[incident.DiffFile] = svg
}

// healthySiblings matches the other workers of the proxy that are not part of
// the incident.
func (e *episode) healthySiblings(w *worker) func(profiler.Worker) bool {
	sibling := profiler.Siblings(w.recorded())
	stuck := map[int]bool{}
	for _, m := range e.members {
		stuck[m.pid] = true
	}
	return func(x profiler.Worker) bool { return sibling(x) && !stuck[x.PID] }
}

// before returns what the flight recorder holds of some workers from 30 s
// before an instant on; nil if that is nothing. The recorder's budget bounds it.
func (a *Agent) before(match func(profiler.Worker) bool, since, until time.Duration) *profile.Profile {
	b := profiler.NewBuilder(a.clock.wallAt(since).Add(-baselineFor), time.Second/time.Duration(a.cfg.Sampling.Rate))
	b.SetDuration(until - since + baselineFor)
	a.recorder.Fill(b, match, since-baselineFor, until)
	p, err := b.Profile()
	if err != nil {
		a.log.Error("flight recorder could not be read", zap.Error(err))
		return nil
	}
	if len(p.Sample) == 0 {
		return nil
	}
	return p
}

func (a *Agent) addPacked(files map[string][]byte, name string, p *profile.Profile) {
	if p == nil {
		return
	}
	var gz bytes.Buffer
	if err := p.Write(&gz); err != nil {
		a.log.Error("profile could not be encoded", zap.String("file", name), zap.Error(err))
		return
	}
	files[name] = gz.Bytes()
}
