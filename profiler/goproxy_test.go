package profiler

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/pprof/profile"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// caddyVersion is that of bench, which builds it in the same place.
const caddyVersion = "v2.10.2"

const caddyMain = `package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func main() { caddycmd.Main() }
`

// caddyConf has Caddy proxy to itself.
const caddyConf = `{"admin": {"disabled": true}, "logging": {"logs": {"default": {"level": "ERROR"}}}, "apps": {"http": {"servers": {"web": {
  "listen": [%[1]q], "automatic_https": {"disable": true}, "routes": [
    {"match": [{"path": ["/text"]}], "handle": [{"handler": "static_response", "body": "some text"}]},
    {"handle": [{"handler": "rewrite", "uri": "/text"}, {"handler": "reverse_proxy", "upstreams": [{"dial": %[1]q}]}]}]}}}}}
`

// goProxies are programs of Go that proxy to themselves. The first argument is
// the folder of the program, the second its address.
var goProxies = []struct {
	name  string
	start func(t *testing.T, dir, address string) *exec.Cmd
}{
	{"standard library", func(t *testing.T, dir, address string) *exec.Cmd {
		build(t, ".", "build", "-o", filepath.Join(dir, "goproxy"), "./testdata/goproxy")
		return exec.Command(filepath.Join(dir, "goproxy"), address)
	}},
	{"caddy", func(t *testing.T, dir, address string) *exec.Cmd {
		conf := filepath.Join(dir, "caddy.json")
		if err := os.WriteFile(conf, fmt.Appendf(nil, caddyConf, address), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(buildCaddy(t), "run", "--config", conf)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd
	}},
}

func build(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("go %v: %v: %s", args, err, out))
	}
}

// buildCaddy builds Caddy in the user's cache, unless it is there already.
func buildCaddy(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "spinguard-bench", "caddy-"+caddyVersion)
	program := filepath.Join(dir, "caddy")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"main.go": caddyMain, "go.mod": "module caddyhost\n\ngo 1.25\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build(t, dir, "get", "github.com/caddyserver/caddy/v2@"+caddyVersion)
	build(t, dir, "build", "-mod=mod", "-o", "caddy.new", ".")
	if err := os.Rename(filepath.Join(dir, "caddy.new"), program); err != nil {
		t.Fatal(err)
	}
	return program
}

// A thread of Go runs on the stack of its goroutine, on its own and on that of
// a signal; under load it is on another one a moment later. At least 99 of 100
// stacks must be whole all the same.
func TestGoProxiesUnderLoad(t *testing.T) {
	for _, c := range goProxies {
		t.Run(c.name, func(t *testing.T) {
			address := fmt.Sprint("127.0.0.1:", freePort(t))
			cmd := c.start(t, t.TempDir(), address)
			cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			n := &nginx{URL: "http://" + address}
			for range 500 {
				if c, err := net.Dial("tcp", address); err == nil {
					c.Close()
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if r, err := http.Get(n.URL + "/proxy"); err != nil || r.StatusCode != http.StatusOK {
				t.Fatalf("it does not proxy: %v %v", r, err)
			}
			n.Load(t, "/proxy", 8)
			const enough = 1500
			total, lost := 0, 0
			for end := time.Now().Add(aMinute); total < enough && time.Now().Before(end); {
				taken, cut := captureStacks(t, cmd.Process.Pid, 2*time.Second)
				total += taken
				for text, k := range cut {
					lost += k
					t.Logf("%d cut: %s", k, text)
				}
			}
			t.Logf("%d of %d stacks whole", total-lost, total)
			if total < 200 || lost*100 > total {
				t.Errorf("%d of %d stacks are cut", lost, total)
			}
		})
	}
}

// captureStacks captures a process and returns how many stacks were taken, and
// those of them that are cut.
func captureStacks(t *testing.T, pid int, d time.Duration) (total int, cut map[string]int) {
	t.Helper()
	s := openSampler(t)
	p, err := Open(pid, symbol.NewCache(64))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	got, err := Capture(context.Background(), s, p, CaptureOptions{Duration: d, Period: time.Second / testRate})
	if err != nil {
		t.Fatal(err)
	}
	cut = map[string]int{}
	for _, x := range got.Sample {
		total += int(x.Value[0])
		text := ""
		for _, l := range x.Location {
			text += " " + l.Line[0].Function.Name
		}
		if root := x.Location[len(x.Location)-1]; root.Line[0].Function.Name == truncatedRoot || !goRoot(root) {
			cut[text] += int(x.Value[0])
		}
	}
	t.Log(got.Comments)
	return total, cut
}

// goRoot says whether a frame is one from which a goroutine or thread begins,
// or behind which the stack of a goroutine was left for good.
func goRoot(l *profile.Location) bool {
	switch l.Line[0].Function.Name {
	case "runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.mcall", "runtime.morestack", "runtime.clone",
		"runtime.goexit.abi0", "runtime.mstart.abi0", "runtime.rt0_go.abi0", "runtime.mcall.abi0", "runtime.morestack.abi0", "runtime.clone.abi0":
		return true
	}
	return false
}
