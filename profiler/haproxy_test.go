package profiler

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
)

// startHAProxy starts a private HAProxy of one thread. It returns its pid and
// the addresses of its frontend and of its administrator's socket.
func startHAProxy(t testing.TB) (pid int, web, admin string) {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		missing(t, "haproxy")
	}
	web, admin = fmt.Sprint("127.0.0.1:", freePort(t)), fmt.Sprint("127.0.0.1:", freePort(t))
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	conf := fmt.Sprintf(`
global
  nbthread 1
  stats socket ipv4@%s level admin
  stats timeout 30s
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind %s
  http-request return status 200 content-type text/plain string "pong" if { path /ping }
  default_backend self
backend self
  http-request set-path /ping
  server self %s
`, admin, web, web)
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("haproxy", "-db", "-f", path)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 200 {
		if r, err := http.Get("http://" + web + "/ping"); err == nil {
			r.Body.Close()
			return cmd.Process.Pid, web, admin
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("haproxy does not answer")
	return 0, "", ""
}

// A handler of HAProxy that computes keeps its fingerprint; traffic changes it.
func TestLowerOfHAProxy(t *testing.T) {
	pid, web, admin := startHAProxy(t)
	s, p := openSampler(t), openProcess(t, pid)
	watch(t, s, p)
	c, err := net.Dial("tcp", admin)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(100 * time.Millisecond)
	fmt.Fprintf(c, "expert-mode on; debug dev loop 1500\n")
	seen, whole, looping := map[uint64]int{}, 0, 0
	n := take(t, s, 300, 3*time.Second, func(x bpf.Sample) {
		r := p.Understand(x)
		if r.Stack.Truncated == "" {
			whole++
		}
		if slices.ContainsFunc(strings.Fields(names(r.Stack)), func(f string) bool { return f == "task_run_applet" }) {
			if looping++; looping > 10 { // before, the command itself was read
				seen[r.Lower()]++
			}
		}
	})
	t.Logf("%d samples, %d whole, fingerprints in the loop: %v", n, whole, seen)
	if len(seen) != 1 || seen[0] > 0 || whole*100 < 99*n {
		t.Errorf("%d fingerprints of one handler; %d of %d stacks whole", len(seen), whole, n)
	}

	h := &nginx{URL: "http://" + web}
	h.Load(t, "/", 8)
	seen, whole = map[uint64]int{}, 0
	cut := map[string]int{}
	n = take(t, s, 600, aMinute, func(x bpf.Sample) {
		r := p.Understand(x)
		seen[r.Lower()]++
		if r.Stack.Truncated == "" {
			whole++
		} else {
			cut[r.Stack.Truncated+": "+names(r.Stack)]++
		}
	})
	t.Logf("%d samples, %d whole, %d fingerprints under load, %d samples without", n, whole, len(seen), seen[0])
	for text, k := range cut {
		t.Log(k, text)
	}
	if n < 100 || len(seen) < n/10 || whole*100 < 99*n {
		t.Errorf("%d fingerprints in %d samples under load; %d stacks whole", len(seen), n, whole)
	}
}
