package drill

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler/stack"
)

func p64(n int64) *int64 { return &n }

// healthyTrial is a case, and a record of it in which all went as it should.
// Tests spoil one thing at a time.
func healthyTrial() (*Scenario, *Case, *record) {
	c := &Case{Name: "gcd-nan", Kind: "A", Proxy: "nginx", Workers: 2,
		Quarantine: &Quarantine{File: "q", Line: "shop 2"},
		Expect: Expect{Verdict: "runaway", WithinMS: 5000, Frame: "wrr.lua:12 gcd", Request: "GET /shop/", Upstream: "shop",
			ConfigVersion: "2", Peer: "127.0.0.1:2", WorkersStuck: 2, StallMS: 300, Heal: healQuarantine}}
	ended := ms(1100)
	inc := &seen{dir: "/x/incidents/one", Incident: incident.Incident{
		Verdict: "runaway", Began: ms(50), Ended: &ended, WorkersStuck: 2, WorkersEvicted: 2,
		Timeline: incident.Timeline{Suspected: p64(0), Confirmed: p64(250), Captured: p64(260), Quarantined: p64(270),
			Evicted: p64(280), Recovered: p64(900)},
		Numbers: incident.Numbers{StallMS: 310},
		Evidence: incident.Evidence{Request: "GET /shop/cart", Upstream: "shop", Version: "2", Peer: "127.0.0.1:2",
			Frames: []string{"gcd (wrr.lua:12)", "schedule (wrr.lua:18)"}, Values: []stack.Value{{Name: "x", Text: "nan"}}},
	}}
	rec := &record{
		trigger: ms(0), incidents: []*seen{inc}, healthy: true, healed: true, hook: "shop 2\n",
		changes: []change{{at: ms(330), pid: 1, gone: true, current: 1}, {at: ms(400), pid: 3, current: 2},
			{at: ms(600), pid: 2, gone: true, current: 1}, {at: ms(690), pid: 4, current: 2}},
		shots: append(append(shotsEvery(-100, 20, true), shotsEvery(20, 700, false)...), shotsEvery(700, 3000, true)...),
	}
	return &Scenario{Case: c, leaf: "gcd", values: "nan"}, c, rec
}

func TestJudgePasses(t *testing.T) {
	sc, c, rec := healthyTrial()
	res := judge(sc, c, ModeEnforce, rec)
	if !res.Passed {
		t.Fatalf("failures: %q", res.Failures)
	}
	want := Timeline{p64(50), p64(300), p64(310), p64(320), p64(330), p64(705)}
	if got := res.Timeline; got.text() != want.text() {
		t.Errorf("timeline %s, want %s", got.text(), want.text())
	}
	if res.WorkersStuck != 2 || res.WorkersEvicted != 2 || res.Probe.FailedAfterRecovery != 0 || res.Incident != "/x/incidents/one" {
		t.Errorf("result %+v", res)
	}
}

func TestJudgeEnforceFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Scenario, *Case, *record, *seen)
		want  string
	}{
		{"no incident", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.incidents = nil }, "no incident: expected verdict runaway"},
		{"other verdict", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Verdict = "blocked" }, "verdict is blocked, expected runaway"},
		{"too late", func(_ *Scenario, c *Case, _ *record, _ *seen) { c.Expect.WithinMS = 299 }, "confirmed 300 ms after the trigger, later than 299 ms"},
		{"never confirmed", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Timeline.Confirmed = nil }, "never confirmed"},
		{"no evidence", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Timeline.Captured = nil }, "no captured evidence"},
		{"false alarm before", func(_ *Scenario, _ *Case, r *record, s *seen) {
			early := *s
			early.Began = ms(-500)
			r.incidents = append(r.incidents, &early)
		}, "false alarm: incident one (runaway) began 500 ms before the trigger"},
		{"frame", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Evidence.Frames[0] = "gcd (wrr.lua:11)" }, "frame wrr.lua:12 does not occur"},
		{"frame too rare", func(_ *Scenario, _ *Case, r *record, s *seen) {
			s.Evidence.Frames[0] = "gcd (wrr.lua:11)"
			r.shares = map[string]map[string]float64{s.dir: {"gcd wrr.lua:12": 0.01}}
		}, "frame wrr.lua:12 does not occur"},
		{"leaf", func(_ *Scenario, _ *Case, _ *record, s *seen) {
			f := s.Evidence.Frames
			f[0], f[1] = f[1], f[0]
		}, "the innermost frame does not name gcd"},
		{"request", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Evidence.Request = "GET /ping" }, `request is "GET /ping", expected one with "GET /shop/"`},
		{"upstream", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Evidence.Upstream = "" }, `upstream is "", expected "shop"`},
		{"version", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Evidence.Version = "1" }, `version is "1", expected "2"`},
		{"peer", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Evidence.Peer = "127.0.0.1:1" }, "peer is"},
		{"values", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Evidence.Values[0].Text = "0" }, "no value is nan"},
		{"fewer stuck", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.WorkersStuck = 1 }, "1 workers stuck, expected 2"},
		{"stall", func(_ *Scenario, c *Case, _ *record, _ *seen) { c.Expect.StallMS = 3000 }, "standstill of 310 ms, expected about 3000 ms"},
		{"not evicted", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Timeline.Evicted = nil }, "no worker was evicted"},
		{"one evicted", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.WorkersEvicted = 1 }, "1 workers evicted, expected 2"},
		{"refused", func(_ *Scenario, _ *Case, _ *record, s *seen) {
			s.WorkersEvicted = 0
			s.Actions = []incident.Action{{Kind: "evict", Target: "worker 1", Result: "refused", Text: "no token left"}}
		}, "0 workers evicted, expected 2: evict of worker 1 refused: no token left"},
		{"no quarantine", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Timeline.Quarantined = nil }, "nothing was quarantined"},
		{"evicted first", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Timeline.Evicted = p64(265) }, "evicted at 315 ms, before the quarantine at 320 ms"},
		{"quarantined blindly", func(_ *Scenario, _ *Case, _ *record, s *seen) { s.Timeline.Quarantined = p64(255) }, "before the evidence was captured"},
		{"hook silent", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.hook = "shop 1\n" }, `the quarantine file lacks the line "shop 2"`},
		{"not recovered", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.shots = shotsEvery(0, 3000, false) }, "the proxy did not recover"},
		{"a worker missing", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.changes = r.changes[:3] }, "the proxy did not recover"},
		{"relapse", func(_ *Scenario, _ *Case, r *record, _ *seen) {
			r.shots = append(r.shots, shotsEvery(3000, 3020, false)...)
		}, "2 probes failed after the recovery"},
		{"healthy", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.healthy = false }, "the healthy request is not answered"},
		{"healed", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.healed = false }, "a healed proxy is not answered"},
		{"left stuck", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.stuck = []string{"worker 9 is stopped"} }, "left stuck: worker 9 is stopped"},
		{"broken incident", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.broken = map[string]string{"two": "cut"} }, "incident.json of two cannot be read: cut"},
		{"problem", func(_ *Scenario, _ *Case, r *record, _ *seen) { r.problems = []string{"the agent ended"} }, "the agent ended"},
		{"share", func(s *Scenario, _ *Case, _ *record, _ *seen) { s.share = 0.95 }, "less than 95 %"},
		{"no lock", func(_ *Scenario, c *Case, _ *record, _ *seen) { c.Expect.Victims = 1 }, "the incident names no lock"},
		{"holder", func(_ *Scenario, c *Case, _ *record, s *seen) {
			c.Expect.Victims, c.Expect.HolderVerdict = 1, "runaway"
			s.Lock = &incident.Lock{Verdict: "blocked", Victims: make([]incident.Worker, 1)}
		}, `verdict of the lock's holder is "blocked", expected runaway`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc, c, rec := healthyTrial()
			tt.spoil(sc, c, rec, rec.incidents[0])
			wantFailure(t, judge(sc, c, ModeEnforce, rec), tt.want)
		})
	}
}

func TestJudgeTakesNoReloadForTheCure(t *testing.T) {
	_, c, rec := healthyTrial()
	s := rec.incidents[0]
	s.Timeline.Evicted, s.Ended = nil, nil
	if at, ok := recovery(c, ModeEnforce, rec, s); ok {
		t.Errorf("recovered at %v, before anybody was evicted", at)
	}
	ended := ms(1100)
	s.Ended = &ended
	if _, ok := recovery(c, ModeEnforce, rec, s); !ok {
		t.Error("not recovered, although the agent that evicted may have died before it could tell")
	}
}

func TestJudgeCountsWorkersThatWereStuckAtOnce(t *testing.T) {
	for _, row := range []struct {
		name  string
		other func(o *seen)
		want  int
	}{
		{"on another culprit", func(*seen) {}, 3},
		{"later", func(o *seen) { o.Began = ms(1200) }, 2},
		{"the same worker again", func(o *seen) { o.Worker.PID = 1 }, 2},
		{"another verdict", func(o *seen) { o.Verdict = "saturated" }, 2},
		{"counted as victims already", func(o *seen) { o.Lock = &incident.Lock{} }, 2},
		{"still open", func(o *seen) { o.Ended = nil }, 3},
	} {
		sc, c, rec := healthyTrial()
		rec.incidents[0].Worker.PID = 1
		ended := ms(900)
		o := &seen{dir: "/x/incidents/two", Incident: incident.Incident{Verdict: "runaway", Began: ms(500), Ended: &ended, WorkersStuck: 1}}
		o.Worker.PID = 2
		row.other(o)
		rec.incidents = append(rec.incidents, o)
		if got := judge(sc, c, ModeEnforce, rec).WorkersStuck; got != row.want {
			t.Errorf("%s: %d workers stuck, want %d", row.name, got, row.want)
		}
	}
}

func TestJudgeFindsTheFrameInTheProfile(t *testing.T) {
	sc, c, rec := healthyTrial()
	s := rec.incidents[0]
	s.Evidence.Frames[0] = "gcd (wrr.lua:11)"
	rec.shares = map[string]map[string]float64{s.dir: {"gcd wrr.lua:12": 0.3}}
	if res := judge(sc, c, ModeEnforce, rec); !res.Passed {
		t.Errorf("failures: %q", res.Failures)
	}
}

func TestJudgeRail(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*record, *seen)
		want  string
	}{
		{"stopped as it should", func(*record, *seen) {}, ""},
		{"went on", func(_ *record, s *seen) { s.WorkersEvicted = 2 }, "2 workers evicted, expected 1 and no more"},
		{"went on in secret", func(r *record, _ *seen) {
			r.changes = append(r.changes, change{at: ms(900), pid: 8, gone: true, current: 1})
		}, "2 workers ended, expected 1"},
		{"said nothing", func(_ *record, s *seen) { s.Actions = nil }, `did not refuse with "empty"; it said: nothing`},
		{"said something else", func(_ *record, s *seen) { s.Actions[0].Text = "tired" }, "it said: evict of worker 2 refused: tired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc, c, rec := healthyTrial()
			s := rec.incidents[0]
			sc.rail = &rail{evicted: 1, refusal: "empty"}
			s.WorkersEvicted, rec.changes = 1, rec.changes[:2]
			s.Actions = []incident.Action{{Kind: "evict", Target: "worker 2", Result: "refused", Text: "the bucket is empty"}}
			tt.spoil(rec, s)
			res := judge(sc, c, ModeEnforce, rec)
			if tt.want == "" && !res.Passed {
				t.Fatalf("failures: %q", res.Failures)
			}
			if tt.want != "" {
				wantFailure(t, res, tt.want)
			}
		})
	}
}

// A stall that comes and goes has several incidents: the first one tells when
// it was found, a later one when it was acted on.
func TestJudgeJoinsIncidents(t *testing.T) {
	sc, c, rec := healthyTrial()
	later := *rec.incidents[0]
	later.dir, later.Began = "/x/incidents/two", ms(400)
	s := rec.incidents[0]
	s.Timeline.Quarantined, s.Timeline.Evicted, s.WorkersEvicted = nil, nil, 0
	rec.incidents = append(rec.incidents, &later)
	for i := range rec.changes {
		rec.changes[i].at = ms(685 + i)
	}
	res := judge(sc, c, ModeEnforce, rec)
	if !res.Passed {
		t.Errorf("failures: %q", res.Failures)
	}
	if got := res.Timeline.text(); got != "suspected 50, confirmed 300, captured 310, quarantined 670, evicted 680, recovered 705 ms" {
		t.Errorf("timeline %s", got)
	}
}

func wantFailure(t *testing.T, res Result, want string) {
	t.Helper()
	if res.Passed || !strings.Contains(strings.Join(res.Failures, "\n"), want) {
		t.Errorf("passed %v, failures %q\nwant one with %s", res.Passed, res.Failures, want)
	}
}

// What the worker waited for a CPU is not the agent's lateness.
func TestABusyMachineMayBeLate(t *testing.T) {
	sc, c, rec := healthyTrial()
	c.Expect.WithinMS, rec.incidents[0].Numbers.RunDelayMS = 200, 100
	if res := judge(sc, c, ModeEnforce, rec); !res.Passed {
		t.Errorf("failures: %q", res.Failures)
	}
}

func TestJudgeObserve(t *testing.T) {
	spoils := map[string]func(*record, *seen){
		"": func(*record, *seen) {},
		"something was quarantined in mode observe": func(_ *record, s *seen) { s.Timeline.Quarantined = p64(1) },
		"1 workers were evicted in mode observe":    func(_ *record, s *seen) { s.WorkersEvicted = 1 },
		"worker 7 ended in mode observe":            func(r *record, _ *seen) { r.changes = []change{{at: ms(5), pid: 7, gone: true}} },
		"frame wrr.lua:12 does not occur":           func(_ *record, s *seen) { s.Evidence.Frames = nil },
	}
	for want, spoil := range spoils {
		sc, c, rec := healthyTrial()
		s := rec.incidents[0]
		s.Timeline.Quarantined, s.Timeline.Evicted, s.WorkersEvicted = nil, nil, 0
		rec.hook, rec.changes, rec.shots = "", nil, shotsEvery(0, 3000, false)
		spoil(rec, s)
		res := judge(sc, c, ModeObserve, rec)
		if want == "" && !res.Passed {
			t.Errorf("failures: %q", res.Failures)
		} else if want != "" {
			wantFailure(t, res, want)
		}
	}
}

func calmTrial() (*Scenario, *Case, *record) {
	c := &Case{Name: "near-miss", Kind: "F", Proxy: "nginx", Workers: 2, Expect: Expect{Verdict: "healthy", WithinMS: 10000,
		Frame: "work.lua:6", Request: "GET /report", StallMS: 300, Heal: healNone, MustNotAct: true}}
	rec := &record{trigger: ms(0), healthy: true, healed: true, shots: shotsEvery(0, 3000, true),
		live: liveLog{polls: 9, first: map[string]time.Time{"healthy": ms(10), "suspect": ms(500)}},
		stalls: []stall{{MS: 120, Request: "GET /other"},
			{MS: 320, Request: "GET /report", Frames: []string{"rounds (work.lua:6)"}}}}
	return &Scenario{Case: c}, c, rec
}

func TestJudgeCalm(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Case, *record)
		want  string
	}{
		{"well", func(*Case, *record) {}, ""},
		{"incident", func(_ *Case, r *record) {
			r.incidents = []*seen{{dir: "/x/one", Incident: incident.Incident{Began: ms(50), Verdict: "runaway", Reason: "301 ms"}}}
		}, "false alarm: incident one with verdict runaway: 301 ms"},
		{"worker ended", func(_ *Case, r *record) { r.changes = []change{{pid: 4, gone: true}} }, "worker 4 ended"},
		{"the case reloads", func(c *Case, r *record) {
			c.TriggerCommand = "kill -HUP $MASTER"
			r.changes = []change{{pid: 4, gone: true}}
		}, ""},
		{"saturated wanted", func(c *Case, _ *record) { c.Expect.Verdict = "saturated" }, `verdict is "healthy", expected saturated`},
		{"saturated seen too late", func(c *Case, r *record) {
			c.Expect.Verdict = "saturated"
			r.live.first["saturated"] = ms(12000)
		}, "verdict saturated only 12000 ms after the trigger"},
		{"probe failed", func(_ *Case, r *record) { r.shots[7].ok, r.shots[7].cut = false, true }, "1 of 300 probes were refused or cut off"},
		{"probe late", func(_ *Case, r *record) { r.shots[7].ok = false }, ""},
		{"no stall told", func(_ *Case, r *record) { r.stalls = nil }, "the stall log is empty"},
		{"stall too short", func(_ *Case, r *record) { r.stalls[1].MS = 120 }, "longest standstill is 120 ms"},
		{"stall elsewhere", func(_ *Case, r *record) { r.stalls[1].Frames = nil }, "frame work.lua:6 occurs in none of the 2 standstills"},
		{"stall of another request", func(_ *Case, r *record) { r.stalls[1].Request = "GET /" }, `request "GET /report" occurs in none`},
		{"stuck", func(_ *Case, r *record) { r.stuck = []string{"worker 9 is stopped"} }, "left stuck"},
		{"quarantined", func(_ *Case, r *record) { r.hook = "shop 2" }, "something was quarantined"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc, c, rec := calmTrial()
			tt.spoil(c, rec)
			res := judge(sc, c, ModeEnforce, rec)
			if tt.want == "" && !res.Passed {
				t.Fatalf("failures: %q", res.Failures)
			}
			if tt.want != "" {
				wantFailure(t, res, tt.want)
			}
		})
	}
}

func TestResultFields(t *testing.T) {
	data, err := json.Marshal(judge(healthyTrialArgs()))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for key, fields := range map[string][]string{
		"timeline": {"suspected", "confirmed", "captured", "quarantined", "evicted", "recovered"},
		"evidence": {"request", "upstream", "version", "frames", "values"},
		"probe":    {"sent", "ok", "failed", "failed_after_recovery"},
		"agent":    {"cpu_seconds", "max_rss_bytes", "samples", "lost_samples"},
	} {
		inner, _ := got[key].(map[string]any)
		for _, f := range fields {
			if _, ok := inner[f]; !ok {
				t.Errorf("result lacks %s.%s", key, f)
			}
		}
	}
	for _, key := range []string{"name", "passed", "failures", "verdict", "workers_stuck", "workers_evicted", "incident"} {
		if _, ok := got[key]; !ok {
			t.Errorf("result lacks %s", key)
		}
	}
	if list, ok := got["failures"].([]any); !ok || len(list) != 0 {
		t.Errorf("failures are %v, want []", got["failures"])
	}
}

func healthyTrialArgs() (*Scenario, *Case, string, *record) {
	sc, c, rec := healthyTrial()
	return sc, c, ModeEnforce, rec
}
