package watchdog

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
)

const busyNginx = `
worker_processes 1;
load_module %[3]s/ndk_http_module.so;
load_module %[3]s/ngx_http_lua_module.so;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events {}
http {
  access_log off;
  server {
    listen 127.0.0.1:%[2]d;
    location /burn/ { content_by_lua_block {
      local n = tonumber(ngx.var.uri:match("%%d+")) or 0
      local x = 0
      for i = 1, n do x = x + math.sin(i) end
      ngx.say(x)
    } }
  }
}
`

// startNginx starts nginx with a configuration into which its folder, a free
// port, the folder of modules and further values are put, and waits until it
// answers for a path.
func startNginx(t *testing.T, conf, path string, values ...any) (base string, master int) {
	t.Helper()
	needBPF(t)
	modules := "/usr/lib/nginx/modules"
	if _, err := os.Stat(modules + "/ngx_http_lua_module.so"); err != nil {
		t.Skip(err)
	}
	dir, port := t.TempDir(), freePort(t)
	write(t, dir+"/nginx.conf", fmt.Sprintf(conf, append([]any{dir, port, modules}, values...)...))
	cmd := exec.Command("nginx", "-c", dir+"/nginx.conf", "-g", "daemon off;")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	base = fmt.Sprintf("http://127.0.0.1:%d", port)
	waitFor(t, "nginx serves", func() bool {
		r, err := http.Get(base + path)
		if err == nil {
			_ = r.Body.Close()
		}
		return err == nil
	})
	text, err := os.ReadFile(dir + "/nginx.pid")
	if err != nil {
		t.Fatal(err)
	}
	master, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return base, master
}

func TestCountsClassesBudgetsAndHotPaths(t *testing.T) {
	base, master := startNginx(t, busyNginx, "/burn/0")
	a, _ := startAgent(t, t.TempDir(), config.Observe, func(c *config.Config) { c.RequestBudget.CPU = 100 * time.Millisecond }, master)
	var stop atomic.Bool
	var clients sync.WaitGroup
	// Several at once, so that the worker never sleeps; each request below any threshold of a stall, a few over the budget.
	for range 4 {
		clients.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if r, err := http.Get(fmt.Sprintf("%s/burn/%d", base, 1_000_000+i%8/7*11_000_000+i)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
				}
			}
		})
	}
	defer func() { stop.Store(true); clients.Wait() }()
	waitFor(t, "a class over its budget", func() bool {
		for _, c := range a.Classes() {
			if c.Route == "GET /burn/*" && c.Phase == "content" && c.CPUSeconds > 0 && c.OverBudget > 0 {
				return true
			}
		}
		return false
	})
	waitFor(t, "the hot path of a busy worker", func() bool {
		for _, e := range a.feed.Recent() {
			if e.Kind == "hot_path" && strings.Contains(e.Text, "content_by_lua") {
				return true
			}
		}
		return false
	})
	waitFor(t, "open files", func() bool {
		s := a.Signals()
		return len(s.Workers) == 1 && s.Workers[0].OpenFiles > 5 && s.Workers[0].FilesLimit > 5
	})
}
