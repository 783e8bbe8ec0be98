package web

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

// In a real browser: the pages run under their own policy without a complaint,
// the script fills the feed, and the flame graph is shown.
func TestPagesInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium")
	}
	s, _ := server(t)
	s.o.Feed.Publish(api.Event{At: noon, Kind: "confirmed", Proxy: "nginx-main", Worker: 2, Incident: testID, Text: `<b id="x">from the stream</b>`})
	l, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	base := "http://" + l.Addr().String()
	for path, want := range map[string]string{
		"/":                          `<span>nginx-main worker 2: &lt;b id="x"&gt;from the stream&lt;/b&gt;</span> <a href="/incidents/` + testID + `/">report</a>`,
		"/quarantines":               "Lift now",
		"/incidents/" + testID + "/": "answered again after 613 ms",
		"/incidents/" + testID + "/pprof/flamegraph": "gcd",
	} {
		dom, console := look(t, chromium, base+path)
		if !strings.Contains(dom, want) {
			t.Errorf("%s: no %q in %.3000s", path, want, dom)
		}
		if strings.Contains(console, "CONSOLE") {
			t.Errorf("%s: the browser complains: %s", path, console)
		}
	}
}

// look returns the DOM of a page, after its script has run, and what the
// browser wrote to its console.
func look(t *testing.T, chromium, url string) (dom, console string) {
	t.Helper()
	c := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--enable-logging=stderr", "--timeout=3000", "--dump-dom", url)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &out, &errs, time.Minute
	if err := c.Run(); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, "CONSOLE") {
			console += line
		}
	}
	return out.String(), console
}
