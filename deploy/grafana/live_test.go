package grafana

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
)

// night is an agent on a bad night: everything that can be shown moves.
type night struct{ scrapes atomic.Int64 }

func (n *night) Status() api.Status {
	k := n.scrapes.Add(1)
	return api.Status{Mode: "enforce", Sampler: "ok", Samples: uint64(100 * k), Lost: map[string]int64{"ring full": k}, Incidents: 1,
		Proxies: []api.Proxy{{Name: "nginx-main"}}}
}

func (n *night) Workers() []api.WorkerStatus {
	k := float64(n.scrapes.Load())
	return []api.WorkerStatus{
		{Proxy: "nginx-main", Index: 1, PID: os.Getpid(), Verdict: "healthy", CPUSeconds: k / 10, Started: time.Unix(1, 0)},
		{Proxy: "nginx-main", Index: 2, PID: os.Getppid(), Verdict: "runaway", StallMS: 100 * k, CPUSeconds: k, Started: time.Unix(1, 0)},
	}
}

func (*night) Quarantines() []api.Quarantine {
	return []api.Quarantine{{Proxy: "nginx-main", Upstream: "shop"}}
}
func (*night) Add(api.QuarantineRequest) (api.Quarantine, error) {
	return api.Quarantine{}, web.ErrRefused
}
func (*night) Lift(string, string) error { return web.ErrNotFound }
func (*night) Classes() []api.Class      { return nil }

func (*night) Signals() api.Signals { return api.Signals{} }

func (*night) Settings() any { return nil }

// Every query of every panel, and every alert that such a night must raise, in a
// real Prometheus that scrapes a real server.
func TestLive(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus")
	}
	agent, metrics := startAgent(t)
	base := startPrometheus(t, prometheus, agent)
	vars := strings.NewReplacer("$job", "spinguard", "$instance", agent, "$__rate_interval", "1m")
	for _, r := range slices.Concat(fleet, node) {
		for _, p := range r.panels {
			for _, q := range p.queries {
				// Something must move after the first scrape for a rate to show.
				wait(t, base, vars.Replace(q.expr), func() { move(metrics) })
			}
		}
	}
	wait(t, base, `ALERTS{alertname="SpinguardWorkerStuck"}`, nil)
	wait(t, base, `ALERTS{alertname="SpinguardIncident"}`, nil)
	for _, window := range []string{"5m", "30m", "1h", "2h", "6h", "3d"} {
		wait(t, base, "spinguard:stalled:ratio_rate"+window, nil)
	}
}

func move(m *web.Metrics) {
	m.ObserveStall("nginx-main", 400*time.Millisecond)
	m.IncIncident("nginx-main", "runaway", time.Unix(1_796_000_000, 0))
	m.IncEviction("nginx-main")
}

// startAgent serves the metrics and returns their address.
func startAgent(t *testing.T) (string, *web.Metrics) {
	t.Helper()
	st, err := incident.Open(filepath.Join(t.TempDir(), "incidents"), incident.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := web.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	src := &night{}
	m := web.NewMetrics("test", src)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- web.New(web.Options{Source: src, Incidents: st, Metrics: m}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = st.Close()
	})
	return l.Addr().String(), m
}

func startPrometheus(t *testing.T, program, agent string) string {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("../prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: spinguard, static_configs: [{targets: [%q]}]}]
`, rules, agent)
	if err := os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freePort(t)
	c := exec.Command(program, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+addr, "--log.level=error")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // killed: an error is what is wanted
	})
	return "http://" + addr
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// wait asks until the query returns a number, for up to a minute.
func wait(t *testing.T, base, query string, between func()) {
	t.Helper()
	var last string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		var n int
		if n, last = ask(base, query); n > 0 {
			return
		}
		if between != nil {
			between()
		}
	}
	t.Errorf("no data for %s: %s", query, last)
}

// ask returns how many series a query has that are numbers.
func ask(base, query string) (int, string) {
	r, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err.Error()
	}
	var a struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return 0, err.Error()
	}
	n := 0
	for _, s := range a.Data.Result {
		if v, ok := s.Value[1].(string); ok && v != "NaN" {
			n++
		}
	}
	return n, string(body)
}
