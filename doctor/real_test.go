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
		text = findingsOf(addr)
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
	if n := strings.Count(text, addr+" file handles: "); n != 1 {
		t.Errorf("file handles are found %d times in\n%s", n, text)
	}
}

// A real nginx with the library, found through its own lua_package_path: the
// first time without spinguard.init, then with it.
func TestRealLibrary(t *testing.T) {
	const modules = "/usr/lib/nginx/modules"
	nginx, err := exec.LookPath("nginx")
	if _, err2 := os.Stat(modules + "/ngx_http_lua_module.so"); err != nil || err2 != nil || os.Getuid() != 0 {
		lacks(t, "no nginx with Lua, or not root")
	}
	lua, err := filepath.Abs("../balancer/lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, init string
		want       []string
	}{
		{"required only", "", []string{"warn NAME quarantine: won't work: resty.spinguard is required (DIR/nginx.conf line 5), but the worker reads no ledger"}},
		{"in use", `.init({ dict = "spinguard", dir = "DIR/run" })`, []string{"ok NAME quarantine: will work: its workers read the ledger DIR/run/ledger"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			_ = l.Close()
			fill := strings.NewReplacer("NAME", "nginx@"+addr, "DIR", dir, "MODULES", modules, "LUA", lua, "INIT", strings.ReplaceAll(test.init, "DIR", dir), "ADDR", addr)
			conf := fill.Replace("load_module MODULES/ndk_http_module.so; load_module MODULES/ngx_http_lua_module.so;\nuser root; pid DIR/pid; error_log DIR/error.log;\nevents {}\nhttp { access_log off; lua_shared_dict spinguard 4m; lua_package_path \"LUA/?.lua;;\";\n  init_by_lua_block { require(\"resty.spinguard\")INIT }\n  server { listen ADDR; }\n}")
			if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-g", "daemon off;")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
			want := append(test.want, "ok NAME library: resty.spinguard "+libraryVersion+" in LUA/resty/spinguard/layout.lua, as the agent's", "ok NAME evidence: LuaJIT 2.")
			text := ""
			for range 100 { // until its worker is there
				if text = findingsOf(addr); strings.Contains(text, "evidence: LuaJIT 2.") {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, line := range want {
				if line = fill.Replace(line); !strings.Contains(text, line) {
					t.Errorf("no %q in\n%s", line, text)
				}
			}
		})
	}
}

// findingsOf returns what doctor says of the proxy at an address, in lines.
func findingsOf(addr string) (text string) {
	for _, f := range Proxies(Ways{}) {
		if strings.Contains(f.Check, addr) {
			text += fmt.Sprintf("%s %s: %s\n", f.Level, f.Check, f.Found)
		}
	}
	return text
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
