package watchdog

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/pprof/profile"
	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
)

// baselineFor is how far back the profiles reach that evidence is compared with.
const baselineFor = 30 * time.Second

// maxSiblings bounds how many workers evidence is compared with: their
// profiles are made while the proxy waits for its healing.
const maxSiblings = 16

// addComparison adds what the stuck worker did before and what its siblings
// do, and the picture of what is new against the first; against the siblings
// where the worker was idle before.
func (a *Agent) addComparison(files map[string][]byte, w *worker, since time.Duration, now *profile.Profile) {
	own := a.recorded(since-baselineFor, since, span{profiler.Only(w.recorded()), since})
	siblings := a.recorded(since-baselineFor, w.last.Now, a.siblings(w)...)
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

// span is what is wanted of the flight recorder: which workers, until when.
type span struct {
	of    func(profiler.Worker) bool
	until time.Duration
}

// siblings returns the other workers of the proxy that live, those that stand
// still only up to then: of several stuck workers none is a measure.
func (a *Agent) siblings(w *worker) []span {
	var list []*worker
	for _, x := range a.workers {
		if x != w && x.in == w.in {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(x, y *worker) int { return cmp.Compare(x.TID, y.TID) })
	spans := make([]span, 0, maxSiblings)
	for _, x := range list[:min(len(list), maxSiblings)] {
		s := span{profiler.Only(x.recorded()), w.last.Now}
		if x.suspectedAt != 0 {
			s.until = min(s.until, x.stallFrom)
		} else if x.decision.Stall > 0 {
			s.until = min(s.until, x.last.Now-x.decision.Wall)
		}
		spans = append(spans, s)
	}
	return spans
}

// recorded makes a profile of what the flight recorder holds; nil if that is
// nothing. The recorder's budget bounds it.
func (a *Agent) recorded(since, until time.Duration, spans ...span) *profile.Profile {
	b := profiler.NewBuilder(a.clock.wallAt(since), time.Second/time.Duration(a.cfg.Sampling.Rate))
	b.SetDuration(until - since)
	for _, s := range spans {
		a.recorder.Fill(b, s.of, since, s.until)
	}
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
