package watchdog

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/watchdog/config"
)

// caddyVersion is that of bench: what it compiled serves here as well.
const caddyVersion = "v2.10.2"

// caddyMain is Caddy as xcaddy builds it, with a handler that loops.
const caddyMain = `package main

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

type spin struct{}

func (spin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.spin", New: func() caddy.Module { return new(spin) }}
}

func (spin) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	spinsForNothing()
	return nil
}

func spinsForNothing() {
	for {
	}
}

func main() {
	caddy.RegisterModule(spin{})
	caddycmd.Main()
}
`

// Requests to /spin never end; Caddy's own admin endpoint has pprof.
const caddyConf = `{"admin": {"listen": %q}, "logging": {"logs": {"default": {"level": "ERROR"}}}, "apps": {"http": {"servers": {"web": {
  "listen": [%q], "automatic_https": {"disable": true}, "routes": [
    {"match": [{"path": ["/spin"]}], "handle": [{"handler": "spin"}]},
    {"handle": [{"handler": "static_response", "body": "some text"}]}]}}}}}
`

// buildCaddy builds Caddy in the user's cache, unless it is there already.
func buildCaddy(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "spinguard-test", "caddy-spin-"+caddyVersion)
	program := filepath.Join(dir, "caddy")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/main.go", caddyMain)
	write(t, dir+"/go.mod", "module caddy\n\ngo 1.25\n")
	for _, args := range [][]string{
		{"get", "github.com/caddyserver/caddy/v2@" + caddyVersion},
		{"build", "-mod=mod", "-o", "caddy.new", "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			if os.Getenv("REQUIRE_BPF") == "1" {
				t.Fatalf("go %v: %v\n%s", args, err, out)
			}
			t.Skipf("go %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Rename(dir+"/caddy.new", program); err != nil {
		t.Fatal(err)
	}
	return program
}

// startCaddy runs Caddy and has four of its goroutines loop.
func startCaddy(t *testing.T) (pid int, web, pprof string) {
	t.Helper()
	needBPF(t)
	program, dir := buildCaddy(t), t.TempDir()
	admin, listen := fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	write(t, dir+"/caddy.json", fmt.Sprintf(caddyConf, admin, listen))
	cmd := exec.Command(program, "run", "--config", dir+"/caddy.json")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "GOMAXPROCS=8")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	waitFor(t, "Caddy serves", func() bool { return get("http://"+listen+"/") == 200 })
	for range 4 {
		c, err := net.Dial("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		fmt.Fprint(c, "GET /spin HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	return cmd.Process.Pid, "http://" + listen, "http://" + admin + "/debug/pprof"
}

func TestGoroutinesOfABusyGoProxy(t *testing.T) {
	pid, web, base := startCaddy(t)
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
	if w := a.Workers(); len(w) != 1 || !strings.HasPrefix(w[0].Proxy, "caddy") || a.Status().Proxies[0].Kind != "go" {
		t.Errorf("%+v of %+v", w, a.Status().Proxies)
	}
	waitFor(t, "the goroutines are told", func() bool {
		a.tellGoroutines(t.Context(), a.Workers()[0])
		for _, e := range a.feed.Recent() {
			if e.Kind == "goroutines" && strings.Contains(e.Text, "ask") && strings.Contains(e.Text, "x main.spinsForNothing (main.go:") && strings.Contains(e.Text, "< main.spin.ServeHTTP (main.go:18) <") {
				return true
			}
		}
		return false
	})
	if list, err := a.store.List(incident.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%d incidents of a busy Go proxy, %v", len(list), err)
	}
	if a.Workers()[0].PID != pid || get(web+"/") != 200 {
		t.Error("Caddy was touched")
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
