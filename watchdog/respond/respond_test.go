package respond

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/judge"
)

var start = time.Date(2021, 7, 13, 22, 52, 0, 0, time.UTC)

// play is an incident of a proxy whose master replaces evicted workers.
type play struct {
	r     Response
	f     Facts
	p     Policy
	kinds []Kind
	last  Action
}

func newPlay(workers ...Worker) *play {
	return &play{
		f: Facts{Now: start, Mode: config.Enforce, CanQuarantine: true, Workers: workers},
		p: Policy{ActAfter: 5 * time.Second},
	}
}

// step carries out what is to be done now, until nothing is.
func (p *play) step() {
	for range 20 {
		a, ok := p.r.Next(p.f, p.p)
		if !ok {
			return
		}
		p.last = a
		p.kinds = append(p.kinds, a.Kind)
		switch a.Kind {
		case Capture:
			p.f.Captured = true
		case Quarantine:
			p.r.Quarantined(nil)
		case Evict:
			p.r.Evicted(a.PID, p.f.Now)
			for i := range p.f.Workers {
				if p.f.Workers[i].PID == a.PID {
					p.f.Workers[i].Gone = true
				}
			}
		}
	}
}

// wait lets time pass; stalls grow with it.
func (p *play) wait(d time.Duration) {
	p.f.Now = p.f.Now.Add(d)
	for i := range p.f.Workers {
		p.f.Workers[i].Stall += d
	}
	p.step()
}

func stuck(pid int, proven bool) Worker {
	return Worker{PID: pid, Verdict: judge.Runaway, Stall: 300 * time.Millisecond, Proven: proven}
}

func (p *play) want(t *testing.T, kinds ...Kind) {
	t.Helper()
	if !slices.Equal(p.kinds, kinds) {
		t.Errorf("actions %v (last: %s), want %v", p.kinds, p.last.Reason, kinds)
	}
}

func TestOrderOfAResponse(t *testing.T) {
	p := newPlay(stuck(1, true), stuck(2, true))
	p.step()
	p.want(t, Capture, Quarantine, Evict)
	p.f.Serving = 1
	p.step()
	p.want(t, Capture, Quarantine, Evict, Evict)
	p.f.Serving = 2
	p.step()
	p.wait(time.Second)
	p.want(t, Capture, Quarantine, Evict, Evict, Recover)
}

func TestItIsOverOnceEverySuccessorServes(t *testing.T) {
	for _, c := range []struct {
		name     string
		starting int
		wait     time.Duration
		over     bool
	}{
		{"the master has started one of two", 0, 2 * time.Second, false},
		{"the second starts, and takes long", 1, 15 * time.Second, false},
		{"there is no second any more", 0, 6 * time.Second, true},
		{"the second never serves", 1, 21 * time.Second, true},
	} {
		p := newPlay(stuck(1, true), stuck(2, true))
		p.step()
		p.f.Serving = 1
		p.step()
		p.f.Starting = c.starting
		p.wait(c.wait)
		since := p.f.Now
		p.wait(time.Second)
		if p.r.Over() != c.over || c.over && !p.last.At.Equal(since) {
			t.Errorf("%s: over %v, well since %v", c.name, p.r.Over(), p.last.At)
		}
		p.f.Serving, p.f.Starting = 2, 0
		p.step()
		p.wait(time.Second)
		if !p.r.Over() {
			t.Errorf("%s: not over when both serve", c.name)
		}
	}
}

func TestAnIncidentWaitsForItsSuspects(t *testing.T) {
	p := newPlay(stuck(1, true))
	p.step()
	p.f.Serving, p.f.Suspects = 1, 1
	p.wait(time.Second)
	p.want(t, Capture, Quarantine, Evict)
	p.f.Suspects = 0
	p.step()
	p.wait(time.Second)
	p.want(t, Capture, Quarantine, Evict, Recover)
}

func TestObserveDoesNothing(t *testing.T) {
	p := newPlay(stuck(1, true))
	p.f.Mode = config.Observe
	p.wait(time.Minute)
	p.want(t, Capture)
}

func TestALongHandlerMayStillEnd(t *testing.T) {
	p := newPlay(stuck(1, false))
	p.wait(4 * time.Second)
	p.want(t, Capture)
	p.f.Workers[0].Verdict = judge.Healthy
	p.step()
	p.wait(time.Second)
	p.want(t, Capture, EndAlone)
}

func TestAfterActAfterItIsEvicted(t *testing.T) {
	p := newPlay(stuck(1, false))
	p.f.CanQuarantine = false
	p.wait(5 * time.Second)
	p.want(t, Capture, Evict)
}

func TestSuccessorStuckAgain(t *testing.T) {
	p := newPlay(stuck(1, true), stuck(2, true))
	p.step()
	p.f.StuckAgain, p.f.Serving = true, 1
	p.wait(time.Second)
	p.want(t, Capture, Quarantine, Evict, Stop)
}

func TestMasterThatDoesNotRespawn(t *testing.T) {
	p := newPlay(stuck(1, true), stuck(2, true))
	p.step()
	p.wait(4 * time.Second)
	p.want(t, Capture, Quarantine, Evict)
	p.wait(2 * time.Second)
	p.want(t, Capture, Quarantine, Evict, Stop)
}

func TestASuccessorThatStartsGetsMoreTime(t *testing.T) {
	p := newPlay(stuck(1, true), stuck(2, true))
	p.step()
	p.f.Starting = 1
	p.wait(19 * time.Second)
	p.want(t, Capture, Quarantine, Evict)
	p.f.Serving, p.f.Starting = 1, 0
	p.step()
	p.want(t, Capture, Quarantine, Evict, Evict)
	q := newPlay(stuck(1, true))
	q.step()
	q.f.Starting = 1
	q.wait(21 * time.Second)
	q.want(t, Capture, Quarantine, Evict, Stop)
}

func TestAnOperatorLiftsTheQuarantineDuringAResponse(t *testing.T) {
	p := newPlay(stuck(1, true), stuck(2, true))
	p.step()
	p.f.Lifted, p.f.Serving = true, 1
	p.wait(time.Second)
	p.want(t, Capture, Quarantine, Evict, Stop)
	if !strings.Contains(p.last.Reason, "operator lifted") {
		t.Error(p.last.Reason)
	}
	// A word from before this response is the business of the quarantine itself.
	q := newPlay(stuck(1, true))
	q.f.Lifted = true
	q.step()
	q.want(t, Capture, Quarantine, Stop)
}

func TestNoEvictionWithoutTheQuarantine(t *testing.T) {
	p := newPlay(stuck(1, true))
	p.f.Captured = true
	a, _ := p.r.Next(p.f, p.p)
	if a.Kind != Quarantine {
		t.Fatalf("first action %s, want the quarantine", a.Kind)
	}
	p.r.Quarantined(errors.New("panic threshold"))
	p.wait(time.Minute)
	p.want(t, Stop)
}

func TestVictimsAndSpinnersStay(t *testing.T) {
	victim := Worker{PID: 1, Verdict: judge.LockVictim}
	spinner := Worker{PID: 2, Verdict: judge.Spinning}
	p := newPlay(victim, spinner)
	p.f.CanQuarantine = false
	p.wait(time.Minute)
	p.want(t, Capture)
	p.p.EvictSpinning = true
	p.wait(time.Minute)
	p.want(t, Capture, Evict)
	if p.last.PID != 2 {
		t.Errorf("evicted %d, want the spinner", p.last.PID)
	}
}

func TestExemptProxiesKeepTheirWorkers(t *testing.T) {
	p := newPlay(stuck(1, false))
	p.f.CanQuarantine, p.f.Exempt = false, "a Go proxy is one process"
	p.wait(time.Minute)
	p.want(t, Capture, Stop)
}

func rails(jitter float64) *Rails {
	return NewRails(config.Default().Rails, start, func() float64 { return jitter })
}

func TestBucketOfEvictions(t *testing.T) {
	r := rails(0)
	for i := range config.Default().Rails.Evictions {
		if err := r.Evict(start); err != nil {
			t.Fatalf("eviction %d: %v", i+1, err)
		}
	}
	if err := r.Evict(start); err == nil || !strings.Contains(err.Error(), "bucket") {
		t.Errorf("an eviction from an empty bucket: %v", err)
	}
	if err := r.Evict(start.Add(15 * time.Second)); err != nil {
		t.Errorf("after one refill: %v", err)
	}
}

func TestQuarantinesGrow(t *testing.T) {
	r, now := rails(0), start
	c := Culprit{Upstream: "shop", Version: "2"}
	for _, want := range []time.Duration{30, 60, 120, 240, 300, 300} {
		until, err := r.Quarantine(now, c, 10, 0)
		if err != nil || until.Sub(now) != want*time.Second {
			t.Errorf("quarantine of %v, %v; want %d s", until.Sub(now), err, want)
		}
		now = until
	}
	if until, _ := r.Quarantine(now.Add(2*time.Hour), c, 10, 0); until.Sub(now.Add(2*time.Hour)) != 30*time.Second {
		t.Errorf("after two quiet hours the ladder did not begin anew")
	}
}

func TestPanicThreshold(t *testing.T) {
	r := rails(0)
	if _, err := r.Quarantine(start, Culprit{Upstream: "a"}, 1, 0); err != nil {
		t.Errorf("the only upstream can't be quarantined: %v", err)
	}
	if _, err := r.Quarantine(start, Culprit{Upstream: "b"}, 4, 1); err != nil {
		t.Errorf("the second of four: %v", err)
	}
	if _, err := r.Quarantine(start, Culprit{Upstream: "c"}, 4, 2); err == nil {
		t.Error("a third of four upstreams was quarantined")
	}
}

func TestJitterOnlyLengthens(t *testing.T) {
	until, _ := rails(0.999).Quarantine(start, Culprit{Upstream: "a"}, 1, 0)
	if d := until.Sub(start); d < 30*time.Second || d > 33*time.Second {
		t.Errorf("quarantine of %v, want 30 s to 33 s", d)
	}
}
