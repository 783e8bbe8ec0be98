package watchdog

import (
	"testing"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// How closely a worker is watched, and what the sampler is told of it.
func TestFollow(t *testing.T) {
	for _, x := range []struct {
		name          string
		decision      judge.Decision
		episode       *episode
		budget        time.Duration
		level         level
		full, patient bool
	}{
		{name: "calm", decision: judge.Decision{Verdict: judge.Healthy}},
		{name: "a budget needs all stacks", decision: judge.Decision{Verdict: judge.Healthy}, budget: time.Second, full: true},
		{name: "at full CPU", decision: judge.Decision{Verdict: judge.Healthy, Close: true}, level: busy, full: true, patient: true},
		{name: "saturated", decision: judge.Decision{Verdict: judge.Saturated, Close: true}, level: busy, full: true, patient: true},
		{name: "saturated, with a budget", decision: judge.Decision{Verdict: judge.Saturated, Close: true}, budget: time.Second, level: busy, full: true},
		{name: "stands still", decision: judge.Decision{Verdict: judge.Saturated, Close: true, Stall: time.Millisecond}, level: closer, full: true},
		{name: "its waits are counted", decision: judge.Decision{Verdict: judge.Saturated, Close: true, Count: true}, level: closer, full: true},
		{name: "suspect", decision: judge.Decision{Verdict: judge.Suspect, Close: true}, level: closer, full: true},
		{name: "burst", decision: judge.Decision{Verdict: judge.Runaway, Close: true, Burst: true}, level: burst, full: true},
		{name: "its evidence is taken", decision: judge.Decision{Verdict: judge.Runaway, Close: true, Burst: true}, episode: &episode{written: true}, level: closer, full: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := &Agent{cfg: config.Config{}}
			a.cfg.RequestBudget.CPU = x.budget
			w := &worker{episode: x.episode, waits: &waitCounter{}}
			a.follow(w, judge.Decision{Verdict: judge.Runaway, Close: true, Burst: true}) // whatever it was before
			a.follow(w, x.decision)
			if w.level != x.level || w.watch.Full != x.full || w.watch.Patient != x.patient {
				t.Errorf("level %d, full %v, patient %v", w.level, w.watch.Full, w.watch.Patient)
			}
		})
	}
}

// A worker that has been busy for long with one request after the other needs
// no windows with each sample, until it does something else.
func TestSettles(t *testing.T) {
	a, w := &Agent{}, &worker{waits: &waitCounter{}}
	atFull := judge.Decision{Verdict: judge.Saturated, Close: true}
	follow := func(now time.Duration, other bool, d judge.Decision) {
		w.last.Now, w.varied.other = now, other
		a.follow(w, d)
	}
	for _, x := range []struct {
		name  string
		now   time.Duration
		other bool
		d     judge.Decision
		want  level
	}{
		{"at first", time.Second, true, atFull, busy},
		{"not long enough", time.Second + settleAfter - 1, true, atFull, busy},
		{"for long, with one request", time.Second + settleAfter, false, atFull, busy},
		{"for long, with others", time.Second + settleAfter, true, atFull, settled},
		{"the same one again", 2*time.Second + settleAfter, false, atFull, busy},
		{"others again", 3*time.Second + settleAfter, true, atFull, settled},
		{"it stands still", 4*time.Second + settleAfter, true, judge.Decision{Verdict: judge.Saturated, Close: true, Stall: 1}, closer},
		{"no longer", 5*time.Second + settleAfter, true, atFull, busy},
		{"it rests", 20 * time.Second, true, judge.Decision{Verdict: judge.Healthy}, calm},
		{"busy again", 21 * time.Second, true, atFull, busy},
	} {
		follow(x.now, x.other, x.d)
		if w.level != x.want || w.watch.Full != (x.want > settled) {
			t.Errorf("%s: level %d, full %v, want level %d", x.name, w.level, w.watch.Full, x.want)
		}
	}
}

// Where many workers are busy each gets its share of the recorder's rate; one
// that is at the same request each time gets the rate of one alone.
func TestLingeringWorkersAreLookedAtMore(t *testing.T) {
	looks := func(request func(i int) uint64) (n int) {
		a := &Agent{recorder: profiler.NewRecorder(profiler.RecorderOptions{Rate: recorderRate, Total: recorderTotal})}
		var all []*worker
		for tid := range 8 {
			w := &worker{in: &instance{}}
			w.PID, w.TID = 1, 1+tid
			all = append(all, w)
		}
		for i := range 490 { // 10 s at 49 Hz
			s := bpf.Sample{When: time.Second + time.Duration(i)*time.Second/49, Weight: time.Second / 49}
			for k, w := range all {
				if !a.worthwhile(w, s) {
					continue
				}
				o := judge.Observation{Now: s.When, Activity: 1, Request: uint64(i + 1)}
				if k == 0 {
					n++
					o.Request = request(i)
				}
				w.varied.add(o)
				a.recorder.Add(w.recorded(), s.When, profiler.Result{}, s.Weight, profiler.Labels{})
			}
		}
		return n
	}
	if n := looks(func(i int) uint64 { return uint64(i + 1) }); n < 5 || n > 7 {
		t.Errorf("%d looks in 10 s at a worker with one request after the other, want one in 2 s", n)
	}
	if n := looks(func(int) uint64 { return 7 }); n < 16 || n > 21 {
		t.Errorf("%d looks in 10 s at a worker with one request, want two a second", n)
	}
}

// Which samples of a worker need no look at their stacks: 20 ms after the last look.
func TestThin(t *testing.T) {
	saw := func(activity, request uint64) judge.Observation {
		return judge.Observation{Now: time.Second, Activity: activity, Request: request}
	}
	for _, x := range []struct {
		name   string
		before [2]judge.Observation
		after  time.Duration // the last look
		change func(w *worker, s *bpf.Sample, a *Agent)
		want   bool
	}{
		{name: "one request after the other", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, want: true},
		{name: "of one connection", before: [2]judge.Observation{saw(1, 1), saw(1, 2)}, want: true},
		{name: "long ago", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, after: thinEvery},
		{name: "settled", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, after: thinEvery, change: func(w *worker, _ *bpf.Sample, _ *Agent) { w.level = settled }, want: true},
		{name: "settled, long ago", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, after: settledEvery, change: func(w *worker, _ *bpf.Sample, _ *Agent) { w.level = settled }},
		{name: "the same request in turns of its own", before: [2]judge.Observation{saw(1, 1), saw(2, 1)}},
		{name: "no request", before: [2]judge.Observation{saw(1, 0), saw(2, 0)}},
		{name: "the first request", before: [2]judge.Observation{saw(1, 0), saw(2, 2)}},
		{name: "no handler", before: [2]judge.Observation{saw(1, 1), saw(0, 2)}},
		{name: "stands still", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, change: func(_ *worker, s *bpf.Sample, _ *Agent) { s.Progress = 7 }},
		{name: "no word", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, change: func(_ *worker, s *bpf.Sample, _ *Agent) { s.ProgressOK = false }},
		{name: "calm", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, change: func(w *worker, _ *bpf.Sample, _ *Agent) { w.level = calm }},
		{name: "in doubt", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, change: func(w *worker, _ *bpf.Sample, _ *Agent) { w.level = closer }},
		{name: "requests have a budget", before: [2]judge.Observation{saw(1, 1), saw(2, 2)}, change: func(_ *worker, _ *bpf.Sample, a *Agent) { a.cfg.RequestBudget.CPU = time.Second }},
	} {
		a, w := &Agent{}, &worker{level: busy, word: 7, wordOK: true}
		s := bpf.Sample{When: time.Second + 20*time.Millisecond + x.after, Progress: 8, ProgressOK: true}
		for _, o := range x.before {
			w.varied.add(o)
		}
		if x.change != nil {
			x.change(w, &s, a)
		}
		if got := a.thin(w, s); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}
