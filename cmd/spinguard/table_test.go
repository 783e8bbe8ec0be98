package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
)

func TestTableAlignsAndDisarms(t *testing.T) {
	var out bytes.Buffer
	table(&out, [][]string{{"A", "B"}, {"über", "x\x1b[31m\n"}})
	if got, want := out.String(), "A     B\nüber  x?[31m?\n"; got != want {
		t.Errorf("table %q, want %q", got, want)
	}
}

func TestWorkersFitTheWidth(t *testing.T) {
	list := []api.WorkerStatus{{Proxy: "nginx@192.168.100.200:8443", PID: 4711, Verdict: "runaway", StallMS: 412, Request: "GET /a/very/long/path/that/does/not/fit/into/a/small/terminal HTTP/1.1", Upstream: "shop", Version: "2"}}
	var out bytes.Buffer
	printWorkers(env{}, &out, list, 40)
	for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		if n := len([]rune(string(line))); n > 40 {
			t.Errorf("line of %d characters: %s", n, line)
		}
	}
	if !bytes.Contains(out.Bytes(), []byte("runaway")) || !bytes.Contains(out.Bytes(), []byte("8443")) {
		t.Errorf("a narrow terminal hides what matters:\n%s", out.String())
	}
	out.Reset()
	printWorkers(env{}, &out, list, 0)
	if !bytes.Contains(out.Bytes(), []byte("shop version 2")) || bytes.Contains(out.Bytes(), []byte("\x1b")) {
		t.Errorf("in a pipe: %s", out.String())
	}
}

func TestTheWorstIsAtTheTop(t *testing.T) {
	list := worstFirst([]api.WorkerStatus{{PID: 1, Verdict: "healthy"}, {PID: 2, Verdict: "saturated"}, {PID: 3, Verdict: "healthy"}, {PID: 4, Verdict: "blocked"}, {PID: 5, Verdict: "runaway"}})
	var order []int
	for _, w := range list {
		order = append(order, w.PID)
	}
	if want := []int{4, 5, 2, 1, 3}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestRecursionTakesOneLine(t *testing.T) {
	var out bytes.Buffer
	printFrames(&out, incident.Evidence{Frames: []string{"pcre", "pcre", "pcre", "match (a.lua:1)", "main\x1b[2J"}, Hot: 3}, 0)
	if want := "  pcre  (3 times)\n> match (a.lua:1)\n  main?[2J\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
