package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference\n%s", file, got)
	}
}

func TestListenTCPOnlyOnLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "nonsense", "127.0.0.1"} {
		if l, err := ListenTCP(addr); err == nil {
			_ = l.Close()
			t.Errorf("%s: listens", addr)
		}
	}
	l, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "agent.sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o660 {
		t.Errorf("socket: %v %v", fi.Mode(), err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("second agent: %v", err)
	}
	// An agent that was killed leaves its file.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	l, err = ListenUnix(path)
	if err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	_ = l.Close()
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file is there: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("the file was touched: %q %v", data, err)
	}
}

// The feed arrives event by event and ends with the agent.
func TestServeAndFeed(t *testing.T) {
	s, _ := server(t)
	s.o.Feed.Publish(api.Event{At: noon, Kind: "suspected", Text: "before"})
	l, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	r, err := http.Get("http://" + l.Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	lines := bufio.NewScanner(r.Body)
	next := func() (e api.Event) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
		t.Fatal("the feed ended")
		return e
	}
	if e := next(); e.Text != "before" {
		t.Errorf("recent: %+v", e)
	}
	s.o.Feed.Publish(api.Event{At: noon, Kind: "note", Text: "two\nlines"})
	if e := next(); e.Text != "two\nlines" {
		t.Errorf("live: %+v", e)
	}
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("an open feed keeps the agent from ending")
	}
	for lines.Scan() && lines.Text() == "" {
	}
	if lines.Text() != "" {
		t.Errorf("after the end: %q", lines.Text())
	}
}

// A listener that does not read must not hold the agent up.
func TestFeedNeverWaits(t *testing.T) {
	var f Feed
	ctx, cancel := context.WithCancel(t.Context())
	_, slow, err := f.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range feedMost - 1 {
		if _, _, err := f.Subscribe(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := f.Subscribe(ctx); err == nil {
		t.Error("there is no bound of listeners")
	}
	for range 1000 {
		f.Publish(api.Event{Text: "x"})
	}
	if n := len(f.Recent()); n != feedKept {
		t.Errorf("%d events kept", n)
	}
	cancel()
	n := 0
	for range slow {
		n++
	}
	if n != 64 {
		t.Errorf("the slow one got %d", n)
	}
	f.Publish(api.Event{Text: "after"}) // must not reach a closed channel
}

func TestHistory(t *testing.T) {
	h := newHistory()
	w := api.WorkerStatus{Proxy: "p", Index: 1}
	for i := range 100 {
		w.CPUShare = float64(i)
		h.add([]api.WorkerStatus{w})
	}
	p := h.of(w)
	if len(p) != historyPoints || p[0].CPU != 40 || p[59].CPU != 99 {
		t.Errorf("%d points from %v", len(p), p[0])
	}
	h.add(nil)
	if len(h.of(w)) != 0 {
		t.Error("a worker that is gone is remembered")
	}
}
