package web

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
)

const testID = "20261130T015749.123Z-0badc0"

// server returns a server with one incident, and its source.
func server(t *testing.T) (*Server, *fakeSource) {
	t.Helper()
	st, err := incident.Open(filepath.Join(t.TempDir(), "incidents"), incident.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if err := st.Create(testIncident(), map[string][]byte{
		incident.FlameFile: []byte(`<svg xmlns="http://www.w3.org/2000/svg" height="300"></svg>`), incident.ProfileFile: testProfile(t),
	}); err != nil {
		t.Fatal(err)
	}
	f := newFake()
	return New(Options{Source: f, Incidents: st, Metrics: NewMetrics("0.1.0", f), Token: "s3cret"}), f
}

// ask sends one request; header is "Name: value" lines.
func ask(t *testing.T, h http.Handler, method, target, body string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:9517"
	for _, s := range header {
		name, value, _ := strings.Cut(s, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRoutes(t *testing.T) {
	s, _ := server(t)
	h := s.Handler(false)
	for _, c := range []struct {
		path string
		code int
		want string // in the body
	}{
		{"/", 200, "nginx-main 2"},
		{"/incidents", 200, "answered again after 613 ms"},
		{"/incidents?verdict=blocked", 200, "No incident matches"},
		{"/incidents?limit=0", 400, "not between 1 and 10000"},
		{"/quarantines", 200, "runaway in gcd (wrr.lua:12)"},
		{"/settings", 200, "runaway: 300ms"},
		{"/feed", 200, "Nothing has happened"},
		{"/nowhere", 404, "not found"},
		{"/fragments/workers", 200, "<polyline"},
		{"/style.css", 200, "--bg"}, {"/app.js", 200, "EventSource"}, {"/icon.svg", 200, "<svg"},
		{"/healthz", 200, "ok"},
		{"/api/status", 200, `"node": "lb-7"`},
		{"/api/workers", 200, `"stall_ms": 412`},
		{"/api/settings", 200, `"mode": "enforce"`},
		{"/api/quarantines", 200, `"id": "q1"`},
		{"/api/incidents?verdict=runaway&limit=5", 200, testID},
		{"/api/incidents?verdict=blocked", 200, "[]"},
		{"/api/incidents?limit=many", 400, "limit"},
		{"/api/incidents/" + testID, 200, `"story": "Worker 2 of nginx-main stopped`},
		{"/api/incidents/20261130T015749.123Z-ffffff", 404, "no such incident"},
		{"/api/incidents/x", 400, "incident id"},
		{"/api/incidents/" + testID + "/export", 200, "\x1f\x8b"},
		{"/incidents/" + testID + "/", 200, `<iframe title="Flame graph of the incident" sandbox="allow-scripts" src="flamegraph.svg" height="308">`},
		{"/incidents/" + testID + "/flamegraph.svg", 200, "<svg"},
		{"/incidents/" + testID + "/incident.json", 200, `"id"`},
		{"/incidents/" + testID + "/nothing.svg", 404, "no such incident"},
		{"/incidents/" + testID + "/pprof/flamegraph", 200, "gcd"},
		{"/incidents/" + testID + "/pprof/top", 200, "gcd"},
		{"/incidents/" + testID + "/pprof/source", 404, "not offered"},
		{"/incidents/" + testID + "/pprof/disasm", 404, "not offered"},
		{"/incidents/" + testID + "/pprof/saveconfig", 404, "not offered"},
		{"/metrics", 200, "spinguard_workers{"},
	} {
		r := ask(t, h, "GET", c.path, "")
		if body := text(t, r); r.StatusCode != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d, want %d with %q: %.300s", c.path, r.StatusCode, c.code, c.want, body)
		}
		if p := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") {
			t.Errorf("%s: policy %q", c.path, p)
		}
	}
}

func TestNoWayOut(t *testing.T) {
	s, _ := server(t)
	h := s.Handler(true)
	for _, path := range []string{
		"/incidents/" + testID + "/%2e%2e%2f.lock", "/incidents/" + testID + "/..%2f..%2fetc%2fpasswd", "/incidents/..%2f.lock/x",
		"/incidents/%2e%2e/incidents", "/api/incidents/%2e%2e", "/api/incidents/..%2f..%2fetc%2fpasswd", "/incidents/" + testID + "/.tmp-x",
	} {
		if r := ask(t, h, "GET", path, ""); r.StatusCode < 300 {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, text(t, r))
		}
	}
}

// What is stored may run a script of its own, but not reach the API.
func TestStoredFilesAreCaged(t *testing.T) {
	s, _ := server(t)
	for _, name := range []string{"flamegraph.svg", "report.html", "incident.json", "profile.pb.gz"} {
		r := ask(t, s.Handler(true), "GET", "/incidents/"+testID+"/"+name, "")
		p := r.Header.Get("Content-Security-Policy")
		if !strings.Contains(p, "sandbox") || strings.Contains(p, "connect-src") || strings.Contains(p, "allow-same-origin") {
			t.Errorf("%s: policy %q", name, p)
		}
	}
}

func TestHost(t *testing.T) {
	s, _ := server(t)
	s.o.Hosts = []string{"lb-7.example"}
	for host, want := range map[string]int{
		"127.0.0.1:9517": 200, "localhost": 200, "[::1]:9517": 200, "127.8.8.8": 200, "LOCALHOST:1": 200, "spinguard": 200, "lb-7.example": 200,
		"evil.example": 421, "127.0.0.1.evil.example": 421, "10.0.0.1:9517": 421, "": 421, "localhost.evil.example:9517": 421,
	} {
		for _, trusted := range []bool{false, true} {
			if r := ask(t, s.Handler(trusted), "GET", "/api/status", "", "Host: "+host); r.StatusCode != want {
				t.Errorf("host %q: %d, want %d", host, r.StatusCode, want)
			}
		}
	}
}

func TestWhoMayChange(t *testing.T) {
	const lift, form = `{"reason": "checked"}`, "application/x-www-form-urlencoded"
	for _, c := range []struct {
		name    string
		trusted bool
		token   string // of the server
		method  string
		path    string
		body    string
		header  []string
		code    int
	}{
		{"socket", true, "s3cret", "DELETE", "/api/quarantines/q1", lift, nil, 204},
		{"socket, server without token", true, "", "DELETE", "/api/quarantines/q1", lift, nil, 204},
		{"token", false, "s3cret", "DELETE", "/api/quarantines/q1", lift, []string{"Authorization: Bearer s3cret"}, 204},
		{"no token", false, "s3cret", "DELETE", "/api/quarantines/q1", lift, nil, 403},
		{"wrong token", false, "s3cret", "DELETE", "/api/quarantines/q1", lift, []string{"Authorization: Bearer s3cre"}, 403},
		{"empty token of a server without", false, "", "DELETE", "/api/quarantines/q1", lift, []string{"Authorization: Bearer "}, 403},
		{"token in the query", false, "s3cret", "DELETE", "/api/quarantines/q1?token=s3cret", lift, nil, 403},
		{"form", false, "s3cret", "POST", "/quarantines/q1/lift", "reason=ok&token=s3cret", []string{"Content-Type: " + form}, 303},
		{"form, token in the query", false, "s3cret", "POST", "/quarantines/q1/lift?token=s3cret", "reason=ok", []string{"Content-Type: " + form}, 403},
		{"foreign page at the socket", true, "", "POST", "/quarantines/q1/lift", "reason=ok", []string{"Content-Type: " + form, "Origin: http://evil.example"}, 403},
		{"foreign page by fetch", true, "", "DELETE", "/api/quarantines/q1?reason=x", "", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"own page at the socket", true, "", "POST", "/quarantines/q1/lift", "reason=ok", []string{"Content-Type: " + form, "Sec-Fetch-Site: same-origin"}, 303},
	} {
		s, f := server(t)
		s.o.Token = c.token
		r := ask(t, s.Handler(c.trusted), c.method, c.path, c.body, c.header...)
		if r.StatusCode != c.code {
			t.Errorf("%s: %d, want %d: %s", c.name, r.StatusCode, c.code, text(t, r))
		}
		if done := len(f.lifted) == 1; done != (c.code < 400) {
			t.Errorf("%s: answered %d, lifted %v", c.name, r.StatusCode, f.lifted)
		}
	}
}

func TestChangesNeedSense(t *testing.T) {
	s, f := server(t)
	h := s.Handler(true)
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"DELETE", "/api/quarantines/q1", `{"reason": " "}`, 400, "reason is missing"},
		{"DELETE", "/api/quarantines/q1", ``, 400, "body"},
		{"DELETE", "/api/quarantines/q1", `{"reason": "` + strings.Repeat("x", 501) + `"}`, 400, "500 are enough"},
		{"DELETE", "/api/quarantines/q1", `{"reason": "` + strings.Repeat("x", 1<<17) + `"}`, 400, "too large"},
		{"DELETE", "/api/quarantines/q9", `{"reason": "x"}`, 404, "q9"},
		{"POST", "/api/quarantines", `{"proxy": "p", "upstream": "u", "reason": "r"}`, 400, "exactly one"},
		{"POST", "/api/quarantines", `{"proxy": "p", "upstream": "u", "version": "1", "peer": "x:1", "reason": "r"}`, 400, "exactly one"},
		{"POST", "/api/quarantines", `{"proxy": "p", "version": "1", "reason": "r"}`, 400, "upstream"},
		{"POST", "/api/quarantines", `{"proxy": "p", "upstream": "u", "version": "1"}`, 400, "reason"},
		{"POST", "/api/quarantines", `{"proxy": "p", "upstream": "u", "version": "1", "reason": "r", "seconds": -1}`, 400, "seconds"},
		{"POST", "/api/quarantines", `{"proxy": "p", "upstream": "u", "version": "1", "reason": "r", "minutes": 5}`, 400, "minutes"},
		{"POST", "/api/quarantines", `{"proxy": "p", "upstream": "u", "version": "3", "reason": "r"}`, 201, `"by": "operator"`},
		{"POST", "/api/quarantines", `nonsense`, 400, "body"},
		{"PUT", "/api/quarantines", `{}`, 404, "not found"},
	} {
		r := ask(t, h, c.method, c.path, c.body)
		if body := text(t, r); r.StatusCode != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %.80s: %d, want %d with %q: %.200s", c.method, c.body, r.StatusCode, c.code, c.want, body)
		}
	}
	if len(f.cuts) != 2 || len(f.lifted) != 0 {
		t.Errorf("quarantines %v, lifted %v", f.cuts, f.lifted)
	}
}

func TestListsAreNeverNull(t *testing.T) {
	s, f := server(t)
	f.workers, f.cuts = nil, nil
	for _, path := range []string{"/api/workers", "/api/quarantines"} {
		if got := text(t, ask(t, s.Handler(false), "GET", path, "")); got != "[]\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := text(t, ask(t, s.Handler(false), "GET", "/", "")); !strings.Contains(got, "No worker is watched") {
		t.Errorf("empty page: %s", got)
	}
}

func TestHostilePage(t *testing.T) {
	s, f := server(t)
	nasty := `"'><script>alert(1)</script><img src=x onerror=alert(1)>` + "\x00\xff</title>"
	f.workers[0] = api.WorkerStatus{Proxy: nasty, Kind: nasty, Verdict: nasty, Reason: nasty, Request: nasty, Upstream: nasty, Incident: nasty}
	f.cuts[0] = api.Quarantine{ID: nasty, Proxy: nasty, Upstream: nasty, Version: nasty, Peer: nasty, Route: nasty, By: nasty, Reason: nasty, Incident: nasty, Origin: nasty}
	f.status.Node, f.status.Mode, f.status.Sampler = nasty, nasty, nasty
	s.o.Feed.Publish(api.Event{Kind: nasty, Proxy: nasty, Incident: nasty, Text: nasty})
	for _, path := range []string{"/", "/quarantines", "/feed", "/incidents?verdict=" + "%22%3E%3Cscript%3E&proxy=%22%3E%3Cscript%3E", "/%3Cscript%3E"} {
		body := text(t, ask(t, s.Handler(true), "GET", path, ""))
		if n := strings.Count(body, "<script"); n != 1 || strings.Contains(body, "<img") {
			t.Errorf("%s: %d scripts, want the page's own", path, n)
		}
	}
	var list []api.WorkerStatus
	if err := json.NewDecoder(ask(t, s.Handler(true), "GET", "/api/workers", "").Body).Decode(&list); err != nil || !strings.HasPrefix(list[0].Request, `"'><script>`) {
		t.Errorf("JSON: %v %v", list, err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(ask(t, s.Handler(true), "GET", "/metrics", "").Body); err != nil || !strings.Contains(b.String(), "spinguard_workers") {
		t.Errorf("metrics: %v %.200s", err, b.String())
	}
}
