package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
)

// quarantined is a Source with one quarantine of long names.
type quarantined struct{ source }

func (quarantined) Quarantines() []api.Quarantine {
	return []api.Quarantine{{ID: "q-0123456789abcdef", Proxy: "nginx@192.168.100.200:8443", Upstream: "checkout-service", Version: "1796003869", Until: time.Now().Add(time.Hour),
		Reason: "20261130T015749.123Z-0badc0: a picker runs for 312 ms that takes microseconds"}}
}

// serveOne serves one incident with long texts on a socket.
func serveOne(t *testing.T) (socket string, inc *incident.Incident) {
	t.Helper()
	store, err := incident.Open(filepath.Join(t.TempDir(), "incidents"), incident.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	began := time.Now().Add(-time.Minute)
	ended := began.Add(2 * time.Second)
	inc = &incident.Incident{ID: incident.NewID(began, nil), Proxy: "nginx@192.168.100.200:8443", Kind: "nginx", Verdict: "runaway", Outcome: incident.Recovered, Began: began, Ended: &ended,
		Worker: incident.Worker{Index: 3, PID: 4711}, WorkersStuck: 4, WorkersEvicted: 4,
		Reason:  "no progress for 312 ms while it used 311 ms of CPU time, and every sample is in the same loop of the same function",
		Actions: []incident.Action{{AtMS: 320, Kind: "quarantine", Target: "version 1796003869 of upstream checkout-service", Result: "done", Text: "until 02:00:00 (30s): a picker runs for 312 ms that takes microseconds"}}}
	inc.Evidence = incident.Evidence{Request: "GET /checkout/basket?with=a&query", Upstream: "checkout-service", Version: "1796003869", Peer: "10.0.0.1:80"}
	inc.Evidence.Values = []stack.Value{{Name: "weights", Text: "a table of some peers and their weights: 5, 3, 0, 1, 2, 8, 13, 21, 34, 55, 89"}}
	inc.Evidence.Frames = []string{"_gcd (/usr/local/share/lua/picker.lua:42)"}
	if err := store.Create(inc, nil); err != nil {
		t.Fatal(err)
	}
	src := quarantined{source{"x"}}
	s := web.New(web.Options{Source: src, Incidents: store, Metrics: web.NewMetrics("test", src), Feed: &web.Feed{}})
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
	return socket, inc
}

// At 80 columns and fewer a story is broken at its words, tables are cut and
// not broken; in a pipe all is whole and plain.
func TestNarrowTerminals(t *testing.T) {
	socket, inc := serveOne(t)
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	story, _, _ := call(t, "incidents", "show", inc.ID, "--socket", socket)
	first, _, _ := strings.Cut(story, "\n")
	done := func(text string) bool { return strings.Contains(text, "THE END") }
	for _, width := range []int{80, 50} {
		show := fmt.Sprintf("PAGER=cat NO_COLOR=1 %s incidents show %s --socket %s", bin, inc.ID, socket)
		text := newScreen(t, width, 50, show).until("the incident", done)
		words := strings.Join(strings.Fields(text), " ")
		for _, want := range []string{first, inc.Reason, inc.Actions[0].Text, inc.Evidence.Values[0].Text} {
			if !strings.Contains(words, want) {
				t.Errorf("at %d columns %q is broken within a word:\n%s", width, want, text)
			}
		}
		list := newScreen(t, width, 12, fmt.Sprintf("PAGER=cat NO_COLOR=1 %s quarantine --socket %s", bin, socket)).until("the quarantine", done)
		if lines := strings.Split(strings.TrimSpace(list), "\n"); len(lines) != 3 || !strings.Contains(lines[1], "q-0123456789abcdef") || !strings.HasSuffix(lines[1], "…") ||
			width == 80 && !strings.Contains(lines[1], "checkout-service  version 1796003869") {
			t.Errorf("quarantines at %d columns:\n%s", width, list)
		}
	}
	plain := newScreen(t, 80, 50, fmt.Sprintf("PAGER=cat %s incidents show %s --socket %s", bin, inc.ID, socket)).until("colours", done, "-e")
	if !strings.Contains(plain, "\x1b[1m") {
		t.Errorf("no colours on a terminal: %q", plain)
	}
	for _, args := range [][]string{{"incidents", "show", inc.ID}, {"incidents"}, {"quarantine"}} {
		out, err := exec.Command(bin, append(args, "--socket", socket)...).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("\x1b")) || args[0] == "quarantine" && !bytes.Contains(out, []byte("takes microseconds\n")) ||
			len(args) == 3 && !bytes.Contains(out, []byte(inc.Reason+")")) {
			t.Errorf("%v in a pipe: %v: %s", args, err, out)
		}
	}
}
