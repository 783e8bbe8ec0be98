package incident

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// stories are the incidents whose sentences are held in testdata/stories.txt.
var stories = []struct {
	name string
	make func(*Incident)
}{
	{"runaway, enforce", func(*Incident) {}},
	{"runaway, two workers evicted", func(i *Incident) { i.WorkersStuck, i.WorkersEvicted = 2, 2 }},
	{"runaway, still open", func(i *Incident) {
		i.Outcome, i.Ended = "", nil
		i.Timeline = Timeline{Suspected: i64(0), Confirmed: i64(204)}
	}},
	{"runaway, open after the quarantine", func(i *Incident) {
		i.Outcome, i.Ended, i.Timeline.Evicted, i.Timeline.Recovered = "", nil, nil, nil
	}},
	{"runaway, observe", func(i *Incident) {
		i.Mode, i.Outcome, i.Timeline = "observe", Observed, Timeline{Suspected: i64(0), Confirmed: i64(204), Captured: i64(221)}
		i.Actions = []Action{{402, "quarantine", "shop version 2", "would", ""}, {431, "evict", "worker 2 (pid 4711)", "would", ""}}
	}},
	{"runaway, ended by itself", func(i *Incident) {
		end := began.Add(4210 * time.Millisecond)
		i.Outcome, i.Ended, i.Timeline = EndedAlone, &end, Timeline{Suspected: i64(0), Confirmed: i64(204)}
		i.Evidence.Phase, i.Evidence.Upstream, i.Evidence.Version, i.Evidence.Values = "", "", "", nil
		i.Evidence.Request = "POST /import"
	}},
	{"runaway, rail", func(i *Incident) {
		i.Outcome, i.Timeline.Evicted, i.Timeline.Recovered = Refused, nil, nil
		i.Actions = append(i.Actions[:1:1], Action{431, "evict", "worker 2", "refused", "no eviction is left in the bucket"})
	}},
	{"runaway, successor stuck again", func(i *Incident) { i.Outcome, i.Timeline.Recovered = StuckAgain, nil }},
	{"runaway, no recovery", func(i *Incident) { i.Outcome, i.Timeline.Recovered = Failed, nil }},
	{"runaway, worker gone", func(i *Incident) { i.Outcome, i.Timeline = Gone, Timeline{Suspected: i64(0)} }},
	{"runaway in C, nothing else known", func(i *Incident) {
		i.Evidence = Evidence{}
		i.Evidence.SetStack(stack.Stack{Frames: []stack.Frame{{Kind: stack.Native, Function: "ngx_event_expire_timers", Mapping: &stack.Mapping{Path: "/usr/sbin/nginx"}}}}, -1)
		i.Timeline.Quarantined = nil
	}},
	{"blocked on a child", func(i *Incident) {
		blocked(i, "wait4(-1)", "")
		i.Evidence.SetStack(stack.Stack{Frames: []stack.Frame{{Kind: stack.Lua, Function: "thumbnail", File: "thumb.lua", Line: 6}}}, -1)
	}},
	{"blocked on a file", func(i *Incident) { blocked(i, "read(17)", "/mnt/nfs/templates/index.html") }},
	{"blocked on a peer", func(i *Incident) { blocked(i, "connect(12)", "192.0.2.1:6379") }},
	{"spinning", func(i *Incident) { i.Verdict, i.Evidence.Phase, i.Timeline.Quarantined = "spinning", "", nil }},
	{"saturated", func(i *Incident) {
		i.Verdict, i.Outcome, i.WorkersStuck, i.WorkersEvicted = "saturated", EndedAlone, 0, 0
		i.Timeline = Timeline{Suspected: i64(0)}
	}},
	{"lock victims", func(i *Incident) {
		i.Verdict, i.Evidence, i.Timeline.Quarantined = "lock_victim", Evidence{Request: "GET /metrics"}, nil
		i.WorkersStuck = 3
		i.Lock = &Lock{Zone: "metrics", Holder: Worker{Index: 1, PID: 4710}, Verdict: "runaway", Victims: []Worker{{Index: 2}, {Index: 3}}}
	}},
	{"unknown verdict of a newer agent", func(i *Incident) { i.Verdict = "haunted" }},
	{"nothing known", func(i *Incident) { *i = Incident{Verdict: "runaway", Began: began} }},
	{"hostile texts", func(i *Incident) {
		i.Evidence.Request = "GET /\x1b[31m\u202egnp.exe\nx"
		i.Evidence.Values[0].Text = strings.Repeat("x", 1<<20)
	}},
}

func blocked(i *Incident, call, target string) {
	i.Verdict, i.Timeline.Quarantined = "blocked", nil
	i.Evidence = Evidence{Request: "GET /thumbnail"}
	i.Blocked = &Blocked{Syscall: call, Target: target, State: "S"}
}

func TestStory(t *testing.T) {
	var b strings.Builder
	for _, s := range stories {
		inc := gcdNaN()
		s.make(inc)
		fmt.Fprintf(&b, "%s\n  %s\n", s.name, Story(inc))
	}
	golden(t, "stories.txt", []byte(b.String()))
}

func TestStoryIsOneSentence(t *testing.T) {
	for _, s := range stories {
		inc := gcdNaN()
		s.make(inc)
		if got := Story(inc); strings.ContainsAny(got, "\n\r\x1b\u202e") || !strings.HasSuffix(got, ".") || len(got) > 2000 {
			t.Errorf("%s: %q", s.name, got)
		}
	}
}
