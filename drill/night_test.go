package drill

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Every night is kept with the protection and broken without: on real nginx,
// three side by side, since they mostly wait; more would want more than two cores.
func TestNights(t *testing.T) {
	need(t, "nginx")
	names := expand([]string{"nights"})
	if len(names) < 14 {
		t.Fatalf("nights are %v", names)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 3)
	for _, name := range names {
		if !strings.HasSuffix(name, "-twin") && !slices.Contains(names, name+"-twin") {
			t.Errorf("%s has no twin", name)
		}
		out := t.TempDir()
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			sleepThrough(t, name, out)
		})
	}
	wg.Wait()
}

func sleepThrough(t *testing.T, name, out string) {
	sc, err := Find(name)
	if err != nil {
		t.Error(err)
		return
	}
	res, err := Run(t.Context(), sc, Options{Mode: ModeNone, Out: out})
	if err != nil || !res.Passed {
		t.Errorf("%s: error %v, failures %q", name, err, res.Failures)
	}
	if twin := strings.HasSuffix(name, "-twin"); twin != (len(res.Broken) > 0) {
		t.Errorf("%s: broken promises: %q", name, res.Broken)
	}
}

func TestJudgeOfNights(t *testing.T) {
	good, late := shot{ended: time.Now(), ok: true}, shot{ended: time.Now()}
	bad := shot{ended: time.Now(), cut: true}
	for _, tt := range []struct {
		name  string
		check func(*nightFacts) []string
		facts nightFacts
		want  string
	}{
		{"nobody down", noneDown, nightFacts{shots: []shot{good, late, {}}}, ""},
		{"others fail", noneDown, nightFacts{shots: []shot{good, bad}}, "1 of 2 requests of others failed"},
		{"peers down", noneDown, nightFacts{metrics: map[string]float64{"ejections_total": 2}}, "2 peers went down"},
		{"list refused", allServe, nightFacts{statuses: map[int]int{422: 9}, requests: []int{1, 1}}, ""},
		{"list taken", allServe, nightFacts{statuses: map[int]int{200: 1}, requests: []int{1, 1}}, "were taken"},
		{"peer forgotten", allServe, nightFacts{requests: []int{1, 0}}, "peer 2 was forgotten"},
		{"goodput", goodput, nightFacts{statuses: map[int]int{200: 113, http.StatusTooManyRequests: 400}, window: time.Second}, ""},
		{"collapse", goodput, nightFacts{statuses: map[int]int{200: 112}, window: time.Second}, "112 good answers a second"},
		{"in vain", goodput, nightFacts{statuses: map[int]int{200: 120, 0: 9}, window: time.Second}, "9 of 129 requests waited in vain"},
		{"damped", damped, nightFacts{metrics: map[string]float64{"ejections_total": 6}}, ""},
		{"undamped", damped, nightFacts{metrics: map[string]float64{"ejections_total": 7}}, "went out 7 times"},
		{"few connections", fewConnections, nightFacts{connections: []int{6}, statuses: map[int]int{200: 50}}, ""},
		{"connections", fewConnections, nightFacts{connections: []int{1, 7}, statuses: map[int]int{200: 50}}, "peer 2 got 7 new"},
		{"starved", fewConnections, nightFacts{statuses: map[int]int{200: 49}}, "only 49 requests"},
		{"no handles", nobodyBlamed, nightFacts{statuses: map[int]int{200: 9, 500: 4}, requests: []int{1}}, ""},
		{"handles enough", nobodyBlamed, nightFacts{statuses: map[int]int{200: 9, 0: 4}, requests: []int{1}}, "never lacked a file handle"},
		{"blamed", nobodyBlamed, nightFacts{statuses: map[int]int{500: 4}, metrics: map[string]float64{"ejections_total": 1}}, "peers went down 1 times"},
		{"still out", nobodyBlamed, nightFacts{statuses: map[int]int{500: 4}, requests: []int{1, 0}}, "peer 2 does not serve"},
	} {
		got := strings.Join(tt.check(&tt.facts), "; ")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A night proves something only if its twin breaks a promise.
func TestTwinMustHurt(t *testing.T) {
	sc, err := Find("night-malformed-twin")
	if err != nil {
		t.Fatal(err)
	}
	res := judge(sc, sc.Case, ModeNone, &record{night: &nightFacts{}, healthy: true})
	wantFailure(t, res, "this night proves nothing")
}

// The agent must say why nothing can be connected, where there is one.
func TestNightIsToldByTheHost(t *testing.T) {
	sc, err := Find("night-files")
	if err != nil {
		t.Fatal(err)
	}
	fine := nightFacts{statuses: map[int]int{http.StatusInternalServerError: 4}, requests: []int{1}}
	for _, tt := range []struct {
		signals map[string]bool
		want    bool
	}{{nil, true}, {map[string]bool{"files": true}, true}, {map[string]bool{"connects": true}, false}} {
		facts := fine
		facts.signals = tt.signals
		if res := judge(sc, sc.Case, ModeNone, &record{night: &facts, healthy: true}); res.Passed != tt.want {
			t.Errorf("signals %v: passed %v, failures %q", tt.signals, res.Passed, res.Failures)
		}
	}
}
