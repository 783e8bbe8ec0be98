package haproxyctl

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const shop = `
global
  nbthread 2
  stats socket %[1]s/admin.sock level admin
  stats socket %[1]s/user.sock level user
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
backend carts
  server first 127.0.0.1:9
  server second 127.0.0.1:9
frontend f
  bind unix@%[1]s/f.sock
  default_backend carts
`

// start runs a real HAProxy in the foreground and returns its directory.
func start(t *testing.T) string {
	t.Helper()
	exe, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "h.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, shop, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-db", "-f", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 500 {
		if c, err := net.Dial("unix", dir+"/admin.sock"); err == nil {
			_ = c.Close()
			return dir
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("HAProxy does not serve")
	return ""
}

func dial(t *testing.T, socket string) *Conn {
	t.Helper()
	c, err := DialAny(t.Context(), Addresses("unix:"+socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTakesAServerOutAndBackIn(t *testing.T) {
	dir := start(t)
	c := dial(t, dir+"/admin.sock")
	if err := c.CheckAdmin(); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"maint", "ready", "drain", "ready"} {
		if err := c.SetState("carts", "first", state); err != nil {
			t.Fatal(err)
		}
		list, err := c.Servers("carts")
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		if list[0].Maintenance() != (state == "maint") || list[0].Drained() != (state == "drain") || list[1].Admin != 0 {
			t.Errorf("after %s: %+v", state, list)
		}
	}
	for _, weight := range []int{0, 1} {
		if err := c.SetWeight(Server{Backend: "carts", Name: "first", Initial: 1}, weight); err != nil {
			t.Fatal(err)
		}
		if list, err := c.Servers("carts"); err != nil || list[0].Weight != weight || list[0].Initial != 1 {
			t.Errorf("after weight %d: %+v, %v", weight, list, err)
		}
	}
	if err := c.SetState("carts", "third", "maint"); err == nil || !strings.Contains(err.Error(), "No such server") {
		t.Error(err)
	}
	if err := dial(t, dir+"/user.sock").CheckAdmin(); !errors.Is(err, ErrNotAdmin) {
		t.Errorf("level user: %v", err)
	}
}

// Half of the connections may go to the thread that is stuck.
func TestAnswersWhileAThreadIsStuck(t *testing.T) {
	dir := start(t)
	busy, err := net.Dial("unix", dir+"/admin.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := fmt.Fprint(busy, "expert-mode on; debug dev loop 1500\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // let it begin
	for range 3 {
		c := dial(t, dir+"/admin.sock")
		if _, err := c.Servers("carts"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSocketThatIsNotThere(t *testing.T) {
	if _, err := DialAny(t.Context(), Addresses("unix:/nowhere/"+strings.Repeat("x/", 60)+"a.sock", 1)); err == nil {
		t.Error("a session without a socket")
	}
	if _, err := DialAny(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no stats socket") {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for socket, want := range map[string]string{
		"unix:/run/a.sock": "unix:/proc/7/root/run/a.sock unix:/run/a.sock",
		"0.0.0.0:99":       "127.0.0.1:99",
		"10.0.0.1:99":      "10.0.0.1:99",
	} {
		if got := strings.Join(Addresses(socket, 7, 0), " "); got != want {
			t.Errorf("%s: %s, want %s", socket, got, want)
		}
	}
}
