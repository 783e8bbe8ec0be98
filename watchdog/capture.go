package watchdog

import (
	"bytes"
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
)

// evidence is what the folder of an incident is made of: copies, so that it
// can be made while the loop goes on.
type evidence struct {
	a     *Agent // for what goroutines may share: store, recorder, exporter, log
	inc   incident.Incident
	at    time.Time
	rates struct{ steady, burst int }

	main       *witness // nil: its worker was gone before anything was copied
	members    []*witness
	since      time.Duration // when the stall began
	began      time.Time     // the same by the wall clock
	unreadable losses
	before     spans
	siblings   spans
	files      map[string][]byte
}

// witness is a copy of what a worker's suspicion has left.
type witness struct {
	tid     int
	verdict string
	last    time.Duration // its last observation
	recent  []sampled
	dropped int
	blind   int
	losses  losses
}

// beginCapture takes the first action of a response: it has the evidence
// written. It says no while too much else waits to be written.
func (a *Agent) beginCapture(e *episode) {
	if main := e.mainMember(); main != nil && main.w != nil && e.told != main.pid {
		a.describe(e, main.w)
	}
	e.inc.Rails = a.rails.Status(a.clock.wall())
	a.addSignals(e)
	ev := a.collect(e)
	e.writing = a.writer.put(task{do: func() func() {
		err := ev.write()
		return func() { a.captured(e, ev.inc.Samples, err) }
	}})
}

// collect copies the evidence of an incident.
func (a *Agent) collect(e *episode) *evidence {
	ev := &evidence{a: a, inc: snapshot(&e.inc), at: a.clock.wall(), files: map[string][]byte{}}
	ev.rates.steady, ev.rates.burst = a.cfg.Sampling.Rate, a.cfg.Sampling.Burst
	main := e.mainMember()
	if main == nil || main.w == nil {
		return ev
	}
	w := main.w
	ev.since = w.stallFrom
	if w.suspectedAt == 0 {
		ev.since = w.last.Now - time.Second
	}
	ev.began = a.clock.wallAt(ev.since)
	for _, m := range e.members {
		if m.w == nil {
			continue
		}
		copied := &witness{tid: m.w.TID, verdict: string(m.verdict), last: m.w.last.Now, recent: slices.Clone(m.w.recent),
			dropped: m.w.dropped, blind: m.w.blind, losses: a.lossesSince(m.w)}
		ev.members = append(ev.members, copied)
		if m == main {
			ev.main = copied
		}
	}
	ev.unreadable = a.lossesSince(w)
	ev.before = spans{ev.since - baselineFor, ev.since, []span{{profiler.Only(w.recorded()), ev.since}}}
	ev.siblings = spans{ev.since - baselineFor, w.last.Now, a.siblings(w)}
	return ev
}

// snapshot copies an incident, so that the loop can go on with it.
func snapshot(inc *incident.Incident) incident.Incident {
	s := *inc
	s.Events, s.Actions, s.Signals = slices.Clone(inc.Events), slices.Clone(inc.Actions), slices.Clone(inc.Signals)
	s.Evidence.Frames = slices.Clone(inc.Evidence.Frames)
	s.Samples.Lost = maps.Clone(inc.Samples.Lost)
	return s
}

// write puts the evidence on disk: the whole folder.
func (ev *evidence) write() error {
	if ev.main != nil {
		if err := ev.profiles(); err != nil {
			return err
		}
	}
	return ev.a.store.Create(&ev.inc, ev.files)
}

// profiles makes the files of the folder.
func (ev *evidence) profiles() error {
	b := profiler.NewBuilder(ev.began, time.Second/time.Duration(ev.rates.burst))
	b.SetDuration(ev.main.last - ev.since)
	for _, w := range ev.members {
		w.fill(b)
	}
	ev.unreadable.countUnreadable(b)
	now, err := b.Profile()
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	ev.inc.Samples = account(b, ev.rates.burst)
	ev.addProfile(now)
	ev.a.exporter.Push(&ev.inc, ev.files[incident.ProfileFile], ev.at)
	ev.addComparison(now)
	return nil
}

// fill adds the samples of a suspicion to a profile.
func (w *witness) fill(b *profiler.Builder) {
	for _, s := range w.recent {
		labels := s.labels
		labels.Verdict = w.verdict
		weight := s.weight
		if weight == 0 {
			weight = time.Millisecond // a look: it stands for no CPU time, but must be seen
		}
		b.Add(s.result, weight, labels)
	}
	b.Lost("not kept", uint64(w.dropped))
	b.Lost("stack not copied", uint64(w.blind))
	w.losses.count(b, w.tid)
}

func (ev *evidence) addProfile(p *profile.Profile) {
	ev.addPacked(incident.ProfileFile, p)
	if svg, err := draw(p, nil, "Stuck"); err != nil {
		ev.a.log.Error("flame graph could not be drawn", zap.Error(err))
	} else {
		ev.files[incident.FlameFile] = svg
	}
}

func (ev *evidence) addPacked(name string, p *profile.Profile) {
	if p == nil {
		return
	}
	var gz bytes.Buffer
	if err := p.Write(&gz); err != nil {
		ev.a.log.Error("profile could not be encoded", zap.String("file", name), zap.Error(err))
		return
	}
	ev.files[name] = gz.Bytes()
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

// captured takes in that the evidence was written, or why it could not be.
func (a *Agent) captured(e *episode, samples incident.Samples, err error) {
	e.writing, e.written = false, true
	e.inc.Samples = samples
	now := a.now(e)
	if err != nil {
		// Without a disk the worker is still stuck: the response goes on with
		// the evidence in memory, and in the log.
		a.log.Error("evidence could not be written; going on with what is in memory", zap.String("incident", e.inc.ID), zap.Error(err),
			zap.Strings("frames", e.inc.Evidence.Frames), zap.String("request", e.inc.Evidence.Request))
		e.note(now, "note", "evidence could not be written: "+err.Error())
	} else {
		e.inc.Timeline.Captured = incident.MS(e.inc.Began, now)
		e.note(now, "captured", "evidence is on disk")
	}
	a.announce(notify.Opened, &e.inc)
	a.log.Warn("evidence captured", zap.String("incident", e.inc.ID), zap.String("folder", a.store.Path(e.inc.ID)),
		zap.Strings("frames", e.inc.Evidence.Frames[:min(6, len(e.inc.Evidence.Frames))]), zap.String("request", e.inc.Evidence.Request),
		zap.String("upstream", e.inc.Evidence.Upstream), zap.String("version", e.inc.Evidence.Version),
		zap.Any("samples", maps.Clone(e.inc.Samples.Lost)))
}
