package doctor

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A real nginx with two bad settings, one of them in an include.
func TestRealNginx(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil || os.Getuid() != 0 {
		lacks(t, "no nginx, or not root")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nginx.conf", fmt.Sprintf("user root; pid %s/pid; error_log %s/error.log; worker_rlimit_nofile 600; events { worker_connections 600; }\nhttp { access_log off; include site*.conf; }", dir, dir))
	write("site.conf", "server { listen "+addr+" reuseport; }")
	cmd := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-g", "daemon off;")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	var text string
	for range 100 { // until its workers are there
		text = ""
		for _, f := range Proxies() {
			if strings.Contains(f.Check, addr) {
				text += fmt.Sprintf("%s %s: %s\n", f.Level, f.Check, f.Found)
			}
		}
		if strings.Contains(text, "reuseport") && strings.Contains(text, "600 a worker") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, want := range []string{"file handles: 600 a worker against worker_connections 600", "reuseport: listen " + addr + " reuseport (" + dir + "/site.conf line 1)", "worker_shutdown_timeout: not set"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// lacks skips a test for want of something, or fails it where nothing may be
// skipped.
func lacks(t *testing.T, what ...any) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}
