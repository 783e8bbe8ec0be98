package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spinguard/spinguard/flamegraph"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
)

// hostile are names as a worker of ill will could have them.
var hostile = map[string]string{
	"controls": "a\x1b[2J\x1b]0;owned\x07\r\b\x00\u009b31m\u202e\u2066z",
	"html":     `"'><script>alert(1)</script><img src=x onerror=alert(1)>]]></svg>{{.}}`,
	"a MB":     strings.Repeat("x", 1<<20),
	"no UTF-8": "a\xff\xfe\xc0\xafz",
	"lines":    "a\nspinguard_workers{proxy=\"forged\"} 1\n# TYPE forged gauge\r\ndata: forged\n\nz",
}

// source is a Source in which everything that has a name has a hostile one.
type source struct{ name string }

func (s source) Status() api.Status {
	return api.Status{Node: s.name, Sampler: s.name, Lost: map[string]int64{s.name: 1}, Proxies: []api.Proxy{{Name: s.name, Note: s.name}}}
}

func (s source) Glance() []api.WorkerStatus { return s.Workers() }

func (s source) Workers() []api.WorkerStatus {
	return []api.WorkerStatus{{Proxy: s.name, Kind: s.name, Index: 1, Verdict: s.name, Reason: s.name, Request: s.name, Upstream: s.name, Version: s.name, Incident: s.name}}
}

func (s source) Quarantines() []api.Quarantine {
	return []api.Quarantine{{ID: "q-1", Proxy: s.name, Upstream: s.name, Route: s.name, By: s.name, Reason: s.name, Until: time.Now().Add(time.Hour)}}
}

func (s source) Classes() []api.Class {
	return []api.Class{{Proxy: s.name, Upstream: s.name, Route: s.name, Phase: s.name}}
}
func (s source) Signals() api.Signals {
	return api.Signals{Recent: []api.Signal{{Kind: s.name, Text: s.name}}, Restarts: map[string]uint64{s.name: 1}}
}
func (source) Add(api.QuarantineRequest) (api.Quarantine, error) {
	return api.Quarantine{}, web.ErrRefused
}
func (source) Lift(string, string) error { return web.ErrNotFound }

// Settings are the operator's own: of any characters, but not of any length.
func (s source) Settings() any { return map[string]string{"name": s.name[:min(100, len(s.name))]} }

// Hostile names of all kinds, in everything that is shown: terminal, page,
// picture, JSON, metrics.
func TestHostileNames(t *testing.T) {
	for kind, name := range hostile {
		t.Run(kind, func(t *testing.T) {
			socket, ask, id := serveHostile(t, name)
			for _, args := range [][]string{{"workers"}, {"quarantine"}, {"incidents"}, {"incidents", "show", id}} {
				out, errs, code := call(t, append(args, "--socket", socket)...)
				if code != 0 {
					t.Errorf("%v: exit code %d: %.200s", args, code, errs)
				}
				checkTerminal(t, strings.Join(args, " "), out)
			}
			for _, args := range [][]string{{"workers", "--json"}, {"quarantine", "--json"}, {"incidents", "--json"}, {"incidents", "show", id, "--json"}} {
				out, _, _ := call(t, append(args, "--socket", socket)...)
				checkJSON(t, strings.Join(args, " "), out)
			}
			for _, path := range []string{"/", "/incidents", "/incidents/" + id + "/", "/quarantines", "/feed", "/settings", "/incidents/" + id + "/report.html"} {
				checkPage(t, path, ask(path))
			}
			for _, path := range []string{"/api/status", "/api/classes", "/api/signals", "/api/incidents/" + id} {
				checkJSON(t, path, ask(path))
			}
			checkMetrics(t, ask("/metrics"))
			checkPicture(t, ask("/incidents/"+id+"/flamegraph.svg"))
		})
	}
}

// serveHostile serves a hostile source and an incident full of such names.
func serveHostile(t *testing.T, name string) (socket string, ask func(string) string, id string) {
	t.Helper()
	store, err := incident.Open(filepath.Join(t.TempDir(), "incidents"), incident.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	now := time.Now()
	inc := &incident.Incident{ID: incident.NewID(now, nil), Proxy: name, Verdict: name, Reason: name, Origin: name, Began: now, Log: []string{name},
		Actions: []incident.Action{{Kind: name, Target: name, Result: name, Text: name}}, Events: []incident.Event{{At: now, Kind: name, Text: name}}}
	inc.Evidence = incident.Evidence{Request: name, Host: name, Upstream: name, Version: name, Peer: name}
	inc.Evidence.SetStack(stack.Stack{Frames: []stack.Frame{{Kind: stack.Lua, Function: name, File: name, Line: 1,
		Values: []stack.Value{{Name: name, Type: name, Text: name, Argument: true}}}}}, 0)
	if err := store.Create(inc, map[string][]byte{incident.FlameFile: picture(t, name)}); err != nil {
		t.Fatal(err)
	}
	src := source{name}
	m := web.NewMetrics("test", src)
	m.IncIncident(name, name, now)
	m.AddRequestCPU(name, name, time.Second)
	feed := &web.Feed{}
	feed.Publish(api.Event{Kind: name, Proxy: name, Incident: name, Text: name})
	s := web.New(web.Options{Source: src, Incidents: store, Metrics: m, Feed: feed})
	socket = filepath.Join(t.TempDir(), "s")
	l, err := web.ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return socket, func(path string) string {
		r := httptest.NewRequest("GET", "http://spinguard"+path, nil)
		w := httptest.NewRecorder()
		s.Handler(true).ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
		return w.Body.String()
	}, inc.ID
}

// picture draws a profile whose symbols and files have such names, as the
// agent does: from pprof.
func picture(t *testing.T, name string) []byte {
	t.Helper()
	line := strings.NewReplacer("\n", "\\n", "\r", "\\r", ";", ":").Replace(name) // of the folded format, not of names
	p, err := flamegraph.Read(strings.NewReader("main;"+line+" 3\n"), name)
	if err != nil && len(name) < 1<<20 {
		t.Fatal(err)
	}
	if err != nil { // a line of a MB is refused where it is read
		return nil
	}
	var b bytes.Buffer
	if _, err := flamegraph.WriteSVG(&b, p, flamegraph.SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func checkTerminal(t *testing.T, what, out string) {
	t.Helper()
	for _, r := range out {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s: %U goes to the terminal", what, r)
			break
		}
	}
	if !utf8.ValidString(out) || len(out) > 64<<10 || strings.Contains(out, "\nspinguard_workers{") {
		t.Errorf("%s: %d bytes, or a line of the name's own", what, len(out))
	}
}

func checkJSON(t *testing.T, what, out string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(out), &v); err != nil || !utf8.ValidString(out) {
		t.Errorf("%s: %v", what, err)
	}
}

var harmful = regexp.MustCompile(`(?i)<script>alert|<img|onerror=alert\(1\)>`)

func checkPage(t *testing.T, what, out string) {
	t.Helper()
	if harmful.MatchString(out) || !utf8.ValidString(out) || strings.ContainsAny(out, "\x1b\x00\x07") {
		t.Errorf("%s: the name is not disarmed: %q", what, harmful.FindString(out))
	}
	if len(out) > 256<<10 {
		t.Errorf("%s: %d bytes", what, len(out))
	}
}

var exposition = regexp.MustCompile(`^(#.*|[a-z_]+(\{([a-z]+="([^"\\\n]|\\.)*",?)*\})? [-+.0-9eInfNa]+)$`)

func checkMetrics(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if line = strings.TrimSuffix(line, "\n"); !exposition.MatchString(line) || len(line) > 2000 || strings.Contains(line, `{proxy="forged"`) || strings.HasPrefix(line, "# TYPE forged") || strings.ContainsAny(line, "\r\x1b\x00") {
			t.Errorf("metrics: %.200q", line)
		}
	}
	if !utf8.ValidString(out) {
		t.Error("metrics: not UTF-8")
	}
}

func checkPicture(t *testing.T, out string) {
	t.Helper()
	if out == "" {
		return
	}
	d := xml.NewDecoder(strings.NewReader(out))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("picture: %v", err)
			return
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "img" {
			t.Error("picture: the name became an element")
		}
	}
}
