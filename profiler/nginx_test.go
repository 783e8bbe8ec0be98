package profiler

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nginx is a private nginx of one test.
type nginx struct {
	Master  int
	Workers []int
	URL     string
	Dir     string
}

// missing skips a test for want of something, or fails it where CI promises
// that everything is there.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal("missing: " + what)
	}
	t.Skip("missing: " + what)
}

// moduleDirs are where the distributions keep nginx's dynamic modules.
var moduleDirs = []string{"/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/share/nginx/modules"}

func luaModule(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("nginx"); err != nil {
		missing(t, "nginx")
	}
	for _, dir := range moduleDirs {
		if _, err := os.Stat(filepath.Join(dir, "ngx_http_lua_module.so")); err == nil {
			return dir
		}
	}
	missing(t, "ngx_http_lua_module.so")
	return ""
}

// startNginx starts an nginx with the given http and server blocks. In them
// PORT stands for its port, TESTDATA for the folder of that name. It is killed when the test ends.
func startNginx(t testing.TB, workers int, main, http, server string) *nginx {
	t.Helper()
	dir, mods, port := t.TempDir(), luaModule(t), freePort(t)
	conf := fmt.Sprintf(`
load_module %[1]s/ndk_http_module.so;
load_module %[1]s/ngx_http_lua_module.so;
user root; daemon off; worker_processes %[2]d; pid %[3]s/nginx.pid; error_log %[3]s/error.log warn;
%[5]s
events { worker_connections 1024; }
http {
  access_log off; lua_package_path "%[3]s/?.lua;;"; client_body_temp_path %[3]s/body;
  proxy_temp_path %[3]s/proxy; fastcgi_temp_path %[3]s/fastcgi; uwsgi_temp_path %[3]s/uwsgi; scgi_temp_path %[3]s/scgi;
  keepalive_requests 1000000;
  %[6]s
  server { listen 127.0.0.1:%[4]d backlog=1024; location = /ping { return 200 "pong\n"; }
  %[7]s
  }
}`, mods, workers, dir, port, main, http, server)
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	conf = strings.NewReplacer("PORT", strconv.Itoa(port), "TESTDATA", testdata).Replace(conf)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nginx", "-p", dir, "-c", path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &nginx{Master: cmd.Process.Pid, URL: fmt.Sprintf("http://127.0.0.1:%d", port), Dir: dir}
	t.Cleanup(func() {
		workers := children(n.Master)
		_ = cmd.Process.Kill() // first, or it starts new workers
		for _, pid := range workers {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = cmd.Wait()
	})
	n.wait(t, &out, workers)
	return n
}

func (n *nginx) wait(t testing.TB, out *bytes.Buffer, workers int) {
	t.Helper()
	for range 200 {
		if n.Get("/ping") == nil {
			n.Workers = children(n.Master)
			if len(n.Workers) == workers {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(n.Dir, "error.log"))
	t.Fatalf("nginx does not answer:\n%s%s", out, log)
}

var client = &http.Client{Timeout: 500 * time.Millisecond}

// Get asks for a path and forgets the answer.
func (n *nginx) Get(path string) error {
	r, err := client.Get(n.URL + path)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

// Trigger sends a request that may never be answered and does not wait.
func (n *nginx) Trigger(t testing.TB, path string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: shop.example.com\r\n\r\n", path)
}

// Load asks for a path over n connections until the test ends.
func (n *nginx) Load(t testing.TB, path string, connections int) {
	t.Helper()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	for range connections {
		go func() {
			c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r, err := c.Get(n.URL + path); err == nil {
					var sink [4096]byte
					for err == nil {
						_, err = r.Body.Read(sink[:])
					}
					r.Body.Close()
				}
			}
		}()
	}
}

func children(pid int) []int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var out []int
	for _, f := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
