package luajit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/symbol"
	"golang.org/x/sys/unix"
)

// symbols resolves exported symbols as the product does.
type symbols struct {
	pid   int
	cache *symbol.Cache
}

func (s symbols) Symbol(m procmem.Mapping, name string) (addr, size uint64, ok bool) {
	image, err := s.cache.Open(s.pid, m)
	if err != nil {
		return 0, 0, false
	}
	bias, placed := image.Bias(m)
	value, size, found := image.Lookup(name)
	return value + bias, size, found && placed
}

const nginxLua = `
load_module %[1]s/ndk_http_module.so;
load_module %[1]s/ngx_http_lua_module.so;
user root; daemon off; worker_processes 1; pid %[2]s/pid; error_log %[2]s/error.log warn;
events { worker_connections 64; }
http {
  access_log off; lua_package_path "%[4]s/?.lua;;";
  client_body_temp_path %[2]s; proxy_temp_path %[2]s; fastcgi_temp_path %[2]s;
  uwsgi_temp_path %[2]s; scgi_temp_path %[2]s;
  server {
    listen 127.0.0.1:%[3]d;
    location = /ping { return 200; }
    location = /gcd { content_by_lua_block { require("spin").gcd(0/0) ngx.say("never") } }
    location = /timer { content_by_lua_block { ngx.timer.at(0, require("spin").timer, "late") ngx.say("ok") } }
    location = /filter { return 200 "x"; header_filter_by_lua_block { require("spin").loop("header") } }
    location = /nested { content_by_lua_block { require("spin").nested() } }
    location = /regex { content_by_lua_block { require("spin").regex() } }
  }
}`

// worker starts a private nginx and returns its worker's pid and its address.
func nginxWorker(t *testing.T) (pid int, url string) {
	t.Helper()
	const modules = "/usr/lib/nginx/modules"
	if _, err := exec.LookPath("nginx"); err != nil {
		missing(t, "nginx")
	}
	if _, err := os.Stat(modules + "/ngx_http_lua_module.so"); err != nil {
		missing(t, "the Lua module of nginx")
	}
	dir, port := t.TempDir(), freePort(t)
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxLua, modules, dir, port, testdata), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nginx", "-p", dir, "-c", conf)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid != 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	for range 200 {
		if get(url+"/ping") == nil {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", cmd.Process.Pid))
			if pid, err = strconv.Atoi(strings.TrimSpace(string(children))); err == nil {
				return pid, url
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	log, _ := os.ReadFile(dir + "/error.log")
	t.Fatalf("nginx does not answer: %s", log)
	return 0, ""
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func get(url string) error {
	c := http.Client{Timeout: 300 * time.Millisecond}
	res, err := c.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// attach opens a process of another parent: it is only read, except that the
// test stops it for the instant of a sample.
func attach(t *testing.T, pid int) (*procmem.Process, *VM) {
	t.Helper()
	p, err := procmem.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	maps, err := procmem.ReadMaps(pid)
	if err != nil {
		t.Fatal(err)
	}
	vms, err := Find(p, maps, symbols{pid, symbol.NewCache(8)})
	if err != nil || len(vms) != 1 {
		t.Fatalf("%d VMs, %v", len(vms), err)
	}
	return p, vms[0]
}

func TestNginx(t *testing.T) {
	for _, c := range []struct {
		path    string
		request bool
		liveCase
	}{
		{"/gcd", true, liveCase{lua: []string{"gcd", "spin", "gcd", "main chunk"}, values: "a=nan b=nan"}},
		{"/timer", true, liveCase{lua: []string{"grind", "spin.timer"}, values: `tag="late"`}},
		{"/filter", true, liveCase{lua: []string{"grind", "loop", "main chunk"}, values: `tag="header"`}},
		{"/nested", true, liveCase{lua: []string{"grind", "inner", "function <spin.lua:37>"}}},
		{"/regex", true, liveCase{lua: []string{"re_match_helper", "regex", "main chunk"}, builtins: []string{"ngx_lua_ffi_exec_regex"}}},
	} {
		t.Run(c.path[1:], func(t *testing.T) {
			pid, url := nginxWorker(t)
			p, vm := attach(t, pid)
			if _, err := vm.Walk(p, nil); !errors.Is(err, ErrIdle) {
				t.Errorf("idle worker: %v", err)
			}
			_ = get(url + c.path)
			// A timer begins after the answer.
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if _, err := vm.Walk(p, nil); !errors.Is(err, ErrIdle) {
					break
				}
			}
			c.script = "spin.lua"
			lines := marked(t, "testdata/spin.lua")
			for n := range 25 {
				pause(n)
				mem, regs := sample(t, vm, p)
				w, err := vm.Walk(mem, regs)
				if err != nil {
					t.Fatal(err)
				}
				if problem := c.check(w, lines); problem != "" {
					t.Fatalf("sample %d: %s\n%s", n, problem, text(w, regs))
				}
				if magic, _ := procmem.Uint32(mem, w.Request); c.request && magic != 0x50545448 {
					t.Fatalf("request %#x does not begin with HTTP", w.Request)
				}
			}
		})
	}
}
