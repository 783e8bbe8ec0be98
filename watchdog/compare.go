package watchdog

import (
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
func (ev *evidence) addComparison(now *profile.Profile) {
	own, siblings := ev.recorded(ev.before), ev.recorded(ev.siblings)
	ev.addPacked(incident.BaselineFile, own)
	ev.addPacked(incident.SiblingsFile, siblings)
	base, title := own, "Stuck, against its own 30 s before"
	if base == nil {
		base, title = siblings, "Stuck, against its siblings"
	}
	if base == nil {
		return
	}
	svg, err := draw(now, base, title)
	if err != nil {
		ev.a.log.Error("difference could not be drawn", zap.Error(err))
		return
	}
	ev.files[incident.DiffFile] = svg
}

// span is what is wanted of the flight recorder: which workers, until when.
type span struct {
	of    func(profiler.Worker) bool
	until time.Duration
}

// spans are what one profile is made of.
type spans struct {
	since, until time.Duration
	list         []span
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
func (ev *evidence) recorded(of spans) *profile.Profile {
	b := profiler.NewBuilder(ev.began.Add(of.since-ev.since), time.Second/time.Duration(ev.rates.steady))
	b.SetDuration(of.until - of.since)
	for _, s := range of.list {
		ev.a.recorder.Fill(b, s.of, of.since, s.until)
	}
	p, err := b.Profile()
	if err != nil {
		ev.a.log.Error("flight recorder could not be read", zap.Error(err))
		return nil
	}
	if len(p.Sample) == 0 {
		return nil
	}
	return p
}
