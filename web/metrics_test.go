package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

// scrape returns the exposition as Prometheus would read it.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	data, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("%d %v %s", w.Code, err, data)
	}
	return string(data)
}

// value returns the value of one series in an exposition.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no series %s", series)
	return 0
}

func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool")
	}
	m := NewMetrics("0.1.0", newFake())
	m.ObserveStall("nginx-main", 412*time.Millisecond)
	m.IncIncident("nginx-main", "runaway", noon)
	m.IncEviction("nginx-main")
	m.IncRefused("nginx-main")
	m.IncQuarantine("nginx-main")
	m.AddRequestCPU("nginx-main", "shop", 20*time.Millisecond)
	c := exec.Command(promtool, "check", "metrics")
	c.Stdin = strings.NewReader(scrape(t, m))
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func TestCounted(t *testing.T) {
	m := NewMetrics("0.1.0", newFake())
	before := scrape(t, m)
	for _, s := range []string{`spinguard_incidents_total{proxy="nginx-main",verdict="runaway"}`, `spinguard_evictions_total{proxy="nginx-main"}`,
		`spinguard_stall_seconds_count{proxy="nginx-main"}`, `spinguard_quarantines_total{proxy="nginx-main"}`} {
		if v := value(t, before, s); v != 0 {
			t.Errorf("%s is %g before anything happened", s, v)
		}
	}
	m.ObserveStall("nginx-main", 2500*time.Millisecond)
	m.IncIncident("nginx-main", "runaway", noon)
	m.IncEviction("nginx-main")
	after := scrape(t, m)
	for s, want := range map[string]float64{
		`spinguard_incidents_total{proxy="nginx-main",verdict="runaway"}`: 1,
		`spinguard_evictions_total{proxy="nginx-main"}`:                   1,
		`spinguard_stall_seconds_sum{proxy="nginx-main"}`:                 2.5,
		`spinguard_stall_seconds_bucket{proxy="nginx-main",le="2"}`:       0,
		`spinguard_stall_seconds_bucket{proxy="nginx-main",le="5"}`:       1,
		`spinguard_incident_last_timestamp_seconds{proxy="nginx-main"}`:   float64(noon.Unix()),
		`spinguard_workers{proxy="nginx-main",verdict="runaway"}`:         1,
		`spinguard_workers{proxy="nginx-main",verdict="blocked"}`:         0,
		`spinguard_worker_stall_seconds{proxy="nginx-main",worker="2"}`:   0.412,
		`spinguard_quarantines{proxy="nginx-main",upstream="shop"}`:       1,
		`spinguard_samples_total`:                                         48000,
		`spinguard_samples_lost_total{reason="ring full"}`:                2,
		`spinguard_sampler_up`:                                            1,
		`spinguard_enforcing`:                                             1,
		`spinguard_stalled_seconds_total{proxy="nginx-main"}`:             2.912,
	} {
		if v := value(t, after, s); v != want {
			t.Errorf("%s is %g, want %g", s, v, want)
		}
	}
	if value(t, after, "spinguard_agent_cpu_seconds_total") <= 0 || value(t, after, "spinguard_agent_resident_memory_bytes") < 1e6 {
		t.Error("the agent's own use is missing")
	}
}

// A respawn is no reset, and the CPU time from before the agent is not counted.
func TestWorkerCPUOnlyRises(t *testing.T) {
	f := newFake()
	m := NewMetrics("0.1.0", f)
	const series = `spinguard_worker_cpu_seconds_total{proxy="nginx-main",worker="2"}`
	set := func(w ...api.WorkerStatus) float64 {
		f.mu.Lock()
		f.workers = w
		f.mu.Unlock()
		return value(t, scrape(t, m), series)
	}
	old := api.WorkerStatus{Proxy: "nginx-main", Index: 2, PID: 10, Started: time.Now().Add(-time.Hour), CPUSeconds: 1000}
	if v := set(old); v != 0 {
		t.Errorf("at first sight %g", v)
	}
	old.CPUSeconds = 1005
	if v := set(old); v != 5 {
		t.Errorf("after 5 s %g", v)
	}
	fresh := api.WorkerStatus{Proxy: "nginx-main", Index: 2, PID: 11, Started: time.Now().Add(time.Hour), CPUSeconds: 2}
	if v := set(old, fresh); v != 7 {
		t.Errorf("beside its successor %g", v)
	}
	if v := set(fresh); v != 7 {
		t.Errorf("successor alone %g", v)
	}
	reused := fresh
	reused.Started, reused.CPUSeconds = fresh.Started.Add(time.Hour), 0.5
	if v := set(reused); v != 7.5 {
		t.Errorf("same pid, another process %g", v)
	}
}

func TestStalledNeverFalls(t *testing.T) {
	f := newFake()
	m := NewMetrics("0.1.0", f)
	const series = `spinguard_stalled_seconds_total{proxy="nginx-main"}`
	f.workers[1].StallMS = 4000
	if v := value(t, scrape(t, m), series); v != 4 {
		t.Errorf("running: %g", v)
	}
	f.workers[1].StallMS = 0
	if v := value(t, scrape(t, m), series); v != 4 {
		t.Errorf("gone, not yet counted: %g", v)
	}
	m.ObserveStall("nginx-main", 4500*time.Millisecond)
	if v := value(t, scrape(t, m), series); v != 4.5 {
		t.Errorf("counted: %g", v)
	}
	f.workers[1].Verdict, f.workers[1].StallMS = "healthy", 60_000
	if v := value(t, scrape(t, m), series); v != 4.5 {
		t.Errorf("an idle worker waits, it does not stall: %g", v)
	}
}

// Whatever comes, the number of series has a bound.
func TestCardinality(t *testing.T) {
	f := newFake()
	f.workers, f.cuts, f.status.Lost, f.status.Proxies = nil, nil, map[string]int64{}, nil
	m := NewMetrics("0.1.0", f)
	for i := range 1000 {
		p := fmt.Sprintf("proxy-%d", i%200)
		f.workers = append(f.workers, api.WorkerStatus{Proxy: p, Index: i, PID: os.Getpid(), Verdict: fmt.Sprintf("verdict-%d", i)})
		f.cuts = append(f.cuts, api.Quarantine{Proxy: p, Upstream: fmt.Sprintf("upstream-%d", i)})
		f.status.Lost[fmt.Sprintf("reason %d", i)] = 1
		m.ObserveStall(p, time.Second)
		m.IncIncident(p, fmt.Sprintf("verdict-%d", i), noon)
		m.IncEviction(strings.Repeat("x", 1<<16) + p)
	}
	first := strings.Count(scrape(t, m), "\n")
	f.workers[0].Proxy, f.cuts[0].Upstream = "yet another", "yet another"
	text := scrape(t, m)
	if n := strings.Count(text, "\n"); n > 6000 || n > first+2 {
		t.Errorf("%d lines, then %d", first, n)
	}
	var lost float64
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "spinguard_samples_lost_total{") {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				t.Fatal(err)
			}
			lost += v
		}
	}
	if lost != 1000 {
		t.Errorf("%g of 1000 lost samples are counted", lost)
	}
}

func TestDescriptors(t *testing.T) {
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	open, most, err := descriptors(os.Getpid())
	entries, derr := os.ReadDir("/proc/self/fd")
	if err != nil || derr != nil || open < 4 || int(open) > len(entries)+2 || most < open {
		t.Errorf("%g of %g open, the folder has %d: %v %v", open, most, len(entries), err, derr)
	}
	if _, _, err := descriptors(1 << 30); err == nil {
		t.Error("a process that is not there has descriptors")
	}
}

// The names are part of the contract with dashboards and rules.
func TestMetricNames(t *testing.T) {
	f := newFake()
	f.workers[0].PID = os.Getpid()
	m := NewMetrics("0.1.0", f)
	m.AddRequestCPU("nginx-main", "shop", time.Second)
	m.WatchSpools(func() []Spool { return []Spool{{Receiver: "webhook"}} })
	var b bytes.Buffer
	for line := range strings.SplitSeq(scrape(t, m), "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			fmt.Fprintln(&b, rest)
		}
	}
	golden(t, "metrics.txt", b.Bytes())
}
