package balancer

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The example configuration finds the library where `make install` puts it,
// without any path in it. The installation happens in a mount namespace.
func TestExampleFindsTheInstalledLibrary(t *testing.T) {
	need(t, "nginx", modules+"/ngx_http_lua_module.so", "make", "unshare")
	if os.Geteuid() != 0 {
		lacks(t, "needs root, for a mount namespace")
	}
	plan, err := exec.Command("make", "-C", "..", "--no-print-directory", "-n", "install").Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(plan)) {
		if strings.Contains(line, "share/lua") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	example, err := os.ReadFile("../deploy/nginx/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	dir, ports := t.TempDir(), freePorts(t, 4)
	conf := strings.NewReplacer("127.0.0.1:8080", fmt.Sprintf("127.0.0.1:%d", ports[0]), "127.0.0.1:8081", fmt.Sprintf("127.0.0.1:%d", ports[1]),
		"127.0.0.1:8082", fmt.Sprintf("127.0.0.1:%d", ports[2]), "127.0.0.1:8089", fmt.Sprintf("127.0.0.1:%d", ports[3]),
		"/run/nginx-spinguard.pid", dir+"/nginx.pid", "worker_processes auto", "daemon off; worker_processes 1",
		`{ dict = "spinguard" }`, `{ dict = "spinguard", dir = "`+dir+`/run" }`).Replace(string(example))
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	script := "mount -t tmpfs none /usr/local/share && " + strings.Join(lines, " && ") +
		fmt.Sprintf(" && test ! -e /usr/local/share/lua/5.1/t && exec nginx -p %s -c %s", dir, path)
	cmd := exec.Command("unshare", "-m", "sh", "-c", script)
	cmd.Dir = ".."
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // nginx stops at once and takes its workers along
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	}()
	web := &http.Client{Timeout: 2 * time.Second}
	eventually(t, "the example answers", func() bool {
		resp, err := web.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0]))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode == 200 && (string(body) == "one\n" || string(body) == "two\n")
	})
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
