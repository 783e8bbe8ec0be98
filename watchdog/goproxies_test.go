package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/watchdog/config"
)

// busyCaddy has the module path of Caddy, by which it is known, and loops.
const busyCaddy = `package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
)

func spinsForNothing() {
	for {
	}
}

func main() {
	for range 4 {
		go spinsForNothing()
	}
	panic(http.ListenAndServe(os.Args[1], nil))
}
`

func startCaddy(t *testing.T) (pid int, base string) {
	t.Helper()
	needBPF(t)
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	write(t, dir+"/go.mod", "module github.com/caddyserver/caddy/v2\n\ngo 1.22\n")
	write(t, dir+"/main.go", busyCaddy)
	build := exec.Command("go", "build", "-o", "busy", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(dir+"/busy", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid, "http://" + address + "/debug/pprof"
}

func TestGoroutinesOfABusyGoProxy(t *testing.T) {
	pid, base := startCaddy(t)
	a, _ := startAgent(t, t.TempDir(), config.Enforce, func(c *config.Config) {
		c.GoPprof = []config.GoPprof{{Proxy: "caddy", URL: base}}
	}, pid)
	waitFor(t, "a second of CPU time", func() bool {
		cpu, err := processCPU(pid)
		return err == nil && cpu > time.Second
	})
	known := map[int]*goProcess{}
	if a.lookAtGoProxies(t.Context(), known); known[pid] == nil || known[pid].cpu < time.Second {
		t.Errorf("%+v", known)
	}
	waitFor(t, "the goroutines are told", func() bool {
		a.tellGoroutines(t.Context(), a.Workers()[0])
		for _, e := range a.feed.Recent() {
			if e.Kind == "goroutines" && strings.Contains(e.Text, "4 x main.spinsForNothing (main.go:10)") {
				return true
			}
		}
		return false
	})
	if list, err := a.store.List(incident.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%d incidents of a busy Go proxy, %v", len(list), err)
	}
}

func TestGoProxyIsSuspectedAfterTwoBusyLooks(t *testing.T) {
	var g goProcess
	at, cpu := 100*time.Second, time.Second
	look := func(share float64) bool {
		at, cpu = at+5*time.Second, cpu+time.Duration(share*float64(5*time.Second))
		return g.step(at, cpu)
	}
	for i, want := range []struct {
		share float64
		told  bool
	}{{9, false}, {1, false}, {0.2, false}, {1, false}, {1.9, true}, {1, false}, {1, false}} {
		if got := look(want.share); got != want.told {
			t.Errorf("look %d: %v", i, got)
		}
	}
	at += goEvery
	if g.step(at, cpu); look(1) {
		t.Error("told after one busy look")
	}
	if !look(1) {
		t.Error("not told again after a while")
	}
}

func TestProcessCPU(t *testing.T) {
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
	}
	if cpu, err := processCPU(os.Getpid()); err != nil || cpu <= 0 || cpu > time.Hour {
		t.Error(cpu, err)
	}
	if _, err := processCPU(-1); err == nil {
		t.Error("a process that is not there")
	}
}
