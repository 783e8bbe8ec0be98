package web

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/spinguard/spinguard/flamegraph"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
)

// need returns where a program is. Without it the test is skipped, or fails
// where nothing may be skipped.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err != nil && os.Getenv("REQUIRE_BPF") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return path
}

// The pages in a real browser: browser/pages.test.mjs says what is looked at.
// SCREENSHOTS=DIR keeps pictures of all of them.
func TestPagesInBrowser(t *testing.T) {
	node, npm, chromium := need(t, "node"), need(t, "npm"), need(t, "chromium")
	packages(t, npm)
	base := serveNight(t)
	c := exec.Command(node, "--test", "--test-reporter=spec", "pages.test.mjs")
	c.Dir = "browser"
	c.Env = append(os.Environ(), "BASE="+base, "INCIDENT="+testID, "CHROMIUM="+chromium)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// packages installs what browser/package-lock.json says, unless it is there.
func packages(t *testing.T, npm string) {
	t.Helper()
	lock, err := os.Stat("browser/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := os.Stat("browser/node_modules/.package-lock.json"); err == nil && done.ModTime().After(lock.ModTime()) {
		return
	}
	c := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	c.Dir = "browser"
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
}

// serveNight serves three incidents, of which the first has all that an
// incident can have, and workers and events that move.
func serveNight(t *testing.T) string {
	t.Helper()
	s, f := server(t)
	fill(t, s.o.Incidents.(*incident.Store))
	l, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, moved := make(chan error, 1), make(chan struct{})
	go func() { served <- s.Serve(ctx, l) }()
	go func() {
		defer close(moved)
		move(ctx, s, f)
	}()
	t.Cleanup(func() {
		cancel()
		<-moved
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// move makes the stall grow and tells an event, again and again.
func move(ctx context.Context, s *Server, f *fakeSource) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		f.mu.Lock()
		fresh := append([]api.WorkerStatus{}, f.workers...)
		fresh[1].StallMS += 50
		f.workers = fresh
		f.mu.Unlock()
		s.o.Feed.Publish(api.Event{At: time.Now(), Kind: "note", Proxy: "nginx-main", Worker: 2, Incident: testID, Text: fmt.Sprintf(`tick %d <b id="x">from the stream</b>`, n)})
	}
}

func flame(t *testing.T, name string) *flamegraph.Profile {
	t.Helper()
	file, err := os.Open("../flamegraph/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	p, err := flamegraph.Read(file, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func drawn(t *testing.T, p *flamegraph.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := flamegraph.WriteSVG(&b, p, flamegraph.SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fill replaces the incident of server by a rich one and adds two more.
func fill(t *testing.T, st *incident.Store) {
	t.Helper()
	worker, base := flame(t, "worker.folded"), flame(t, "base.folded")
	difference, err := flamegraph.Diff(base, worker)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("../incident/testdata/gcd-nan.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	rich, err := incident.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		incident.FlameFile: drawn(t, worker), incident.DiffFile: drawn(t, difference),
		incident.ProfileFile: testProfile(t), incident.BaselineFile: testProfile(t),
	}
	if err := st.Update(rich, files); err != nil {
		t.Fatal(err)
	}
	for n, verdict := range []string{"blocked", "saturated"} {
		inc := testIncident()
		inc.Began = inc.Began.Add(-time.Duration(n+1) * time.Hour)
		inc.ID, inc.Verdict = incident.NewID(inc.Began, nil), verdict
		if err := st.Create(inc, nil); err != nil {
			t.Fatal(err)
		}
	}
}
