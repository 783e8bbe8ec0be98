package watchdog

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web/api"
)

func TestConnectsAreCountedWhileSomethingHintsAtTrouble(t *testing.T) {
	var k connectCounter
	for i, step := range []struct {
		when  config.When
		hint  string
		after time.Duration
		want  bool
	}{
		{config.Suspected, "", 0, false},
		{config.Suspected, "20 connects failed", 5 * time.Second, true},
		{config.Suspected, "", countFor - time.Second, true},
		{config.Suspected, "again", time.Second / 2, true},
		{config.Suspected, "", countFor - time.Second, true},
		{config.Suspected, "", time.Second, false},
		{config.Never, "20 connects failed", time.Second, false},
		{config.Always, "", time.Second, true},
		{config.Never, "", time.Second, false},
	} {
		k.since -= step.after // so that now may stay the same
		if got := k.step(step.when, step.hint, time.Hour); got != step.want {
			t.Errorf("step %d: %v, because %q", i, got, k.why)
		}
	}
}

const failingBackends = `
worker_processes 2;
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log crit;
events { worker_connections 256; }
http {
  access_log off;
  proxy_connect_timeout 200ms;
  server {
    listen 127.0.0.1:%[2]d;
    location /refused { proxy_pass http://127.0.0.1:%[3]d; }
    location /silent { proxy_pass http://%[4]s; }
    location / { return 200; }
  }
}
`

// startFailing runs nginx with a backend that refuses and one that is silent.
func startFailing(t *testing.T) (master int, base, refused, silent string) {
	t.Helper()
	needBPF(t)
	dir, port, closed := t.TempDir(), freePort(t), freePort(t)
	silent = silentAddress(t)
	write(t, dir+"/nginx.conf", fmt.Sprintf(failingBackends, dir, port, closed, silent))
	cmd := exec.Command("nginx", "-p", dir, "-c", dir+"/nginx.conf")
	if err := cmd.Start(); err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	base = fmt.Sprintf("http://127.0.0.1:%d", port)
	waitFor(t, "nginx serves", func() bool { return get(base+"/") == 200 })
	return cmd.Process.Pid, base, fmt.Sprintf("127.0.0.1:%d", closed), silent
}

// silentAddress is one whose queue is full: nobody answers there.
func silentAddress(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return address
}

func get(url string) int {
	r, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer func() { _ = r.Body.Close() }()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// Enough refused connects for the host's own counter, which is what hints.
func TestTellsWhichPeersRefuseAndAreSilent(t *testing.T) {
	master, base, refused, silent := startFailing(t)
	a, _ := startAgent(t, t.TempDir(), config.Observe, nil, master)
	if v := a.Signals(); v.Counting != "" || len(v.Connects) != 0 {
		t.Errorf("counted without a hint: %+v", v)
	}
	stop := time.Now().Add(40 * time.Second)
	for !told(a.Signals(), refused, "refused") || !told(a.Signals(), silent, "given up by the proxy") {
		if time.Now().After(stop) {
			t.Fatalf("not told: %+v", a.Signals())
		}
		for range 10 {
			if code := get(base + "/refused"); code != 502 {
				t.Fatal("refused:", code)
			}
		}
		for range 3 {
			if code := get(base + "/silent"); code != 504 {
				t.Fatal("silent:", code)
			}
		}
	}
	v := a.Signals()
	if v.Counting == "" {
		t.Error("nobody says why connects are counted")
	}
	for _, want := range []struct {
		peer string
		ok   func(api.PeerConnects) bool
	}{
		{refused, func(p api.PeerConnects) bool { return p.Refused > 0 && p.Refused == p.Begun && p.GivenUp == 0 }},
		{silent, func(p api.PeerConnects) bool { return p.GivenUp > 0 && p.Refused == 0 && p.Established == 0 }},
	} {
		if !slices.ContainsFunc(v.Connects, func(p api.PeerConnects) bool { return p.Peer == want.peer && want.ok(p) }) {
			t.Errorf("%s: %+v", want.peer, v.Connects)
		}
	}
}

func told(v api.Signals, peer, how string) bool {
	return slices.ContainsFunc(v.Recent, func(s api.Signal) bool {
		return s.Kind == "connects" && s.Proxy != "" && strings.Contains(s.Text, "connects to "+peer+" failed") && strings.Contains(s.Text, how)
	})
}
