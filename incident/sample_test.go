package incident

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
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

var began = time.Date(2026, 11, 30, 1, 57, 49, 123456789, time.UTC)

func i64(n int64) *int64 { return &n }

// gcdNaN is the incident of the outage behind the project, healed.
func gcdNaN() *Incident {
	ended := began.Add(613 * time.Millisecond)
	inc := &Incident{
		ID: "20261130T015749.123Z-0badc0", Origin: "lb-7", Proxy: "nginx-main", Kind: "openresty",
		Worker: Worker{Index: 2, PID: 4711, Since: began.Add(-time.Hour)}, Mode: "enforce",
		Verdict: "runaway", Reason: "304 ms of CPU without progress while a picker runs (limit 300 ms)",
		Outcome: Recovered, Began: began, Ended: &ended,
		Timeline: Timeline{i64(0), i64(204), i64(221), i64(402), i64(431), i64(613)},
		Events: []Event{
			{began, "suspected", "102 ms of CPU without progress"},
			{began.Add(204 * time.Millisecond), "confirmed", "304 ms of CPU without progress"},
			{began.Add(402 * time.Millisecond), "quarantined", "shop version 2 for 30 s"},
		},
		Change:  &Change{Upstream: "shop", From: "1", To: "2", Text: " 127.0.0.1:8081 weight 5\n-127.0.0.1:8082 weight 5\n+127.0.0.1:8082 weight \"0\"\n"},
		Numbers: Numbers{StallMS: 431, CPUMS: 428, CPUShare: 0.99, RunDelayMS: 3, Voluntary: 0},
		Actions: []Action{
			{402, "quarantine", "shop version 2", "done", "for 30 s, until 01:58:19"},
			{431, "evict", "worker 2 (pid 4711)", "done", "its own stack shows the quarantined version"},
		},
		Rails:        []string{"15 of 16 evictions left", "1 of 12 upstreams quarantined"},
		WorkersStuck: 1, WorkersEvicted: 1,
		Samples: Samples{Taken: 312, Shown: 310, Lost: map[string]int64{"ring full": 2}, Truncated: 1, Unnamed: 4, RateHz: 997},
		Log:     []string{`2026/11/30 01:57:49 [alert] 100#100: worker process 4711 exited on signal 9`},
	}
	inc.Evidence = Evidence{Request: "GET /shop/cart/17 HTTP/1.1", Host: "shop.example", Phase: "pick", Upstream: "shop", Version: "2", Digest: "sha256:5be1", Peer: "127.0.0.1:8082"}
	inc.Evidence.SetStack(stack.Stack{Frames: []stack.Frame{
		{Kind: stack.Lua, Function: "gcd", File: "/etc/nginx/lua/wrr.lua", Line: 12, StartLine: 8, Values: []stack.Value{
			{Name: "a", Type: "number", Text: "nan", Argument: true}, {Name: "b", Type: "number", Text: "nan", Argument: true}}},
		{Kind: stack.Lua, Function: "pick", File: "/etc/nginx/lua/wrr.lua", Line: 40, Values: []stack.Value{{Name: "name", Type: "string", Text: `"shop"`, Argument: true}}},
		{Kind: stack.Native, Function: "lua_pcall", Address: 0x7f0012345678, Mapping: &stack.Mapping{Path: "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"}},
		{Kind: stack.Native, Function: "main", Address: 0x401000, Mapping: &stack.Mapping{Path: "/usr/sbin/nginx"}},
	}}, -1)
	inc.Evidence.Lines = []Line{{"wrr.lua:12", 0.91}, {"wrr.lua:10", 0.09}}
	return inc
}
