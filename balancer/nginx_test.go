package balancer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// proxy is a private nginx with the library, on free loopback ports.
type proxy struct {
	t      testing.TB
	dir    string
	port   int
	admin  int
	ports  []int // of the backends, which answer with their port
	cmd    *exec.Cmd
	client *http.Client
}

type proxyOptions struct {
	workers  int
	backends int
	init     string // Lua after spinguard.init
	options  string // more fields for spinguard.init, with a leading comma
	server   string // more of the front server
	http     string // more of the http block
	dict     string // size
	jitOff   bool
	location string // more of the front location
	upstream string // more of the upstream block
	backend  string // more of each backend
	listen   string // parameters of the front server's listen
}

const proxyConf = `
load_module MODULES/ndk_http_module.so;
load_module MODULES/ngx_http_lua_module.so;
user nobody nogroup;
worker_processes WORKERS;
daemon off;
pid DIR/nginx.pid;
error_log DIR/error.log notice;
events { worker_connections 1024; }
http {
    access_log off;
    keepalive_requests 100000;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    lua_shared_dict spinguard DICT;
    lua_package_path "LUA/?.lua;;";
    init_by_lua_block {
        JIT
        spinguard = require "resty.spinguard"
        spinguard.init({ dict = "spinguard", dir = "DIR/run"OPTIONS })
        INIT
    }
    init_worker_by_lua_block { spinguard.init_worker() }
    HTTP
    upstream backend {
        server 0.0.0.1;
        balancer_by_lua_block { spinguard.balance("backend") }
        UPSTREAM
    }
    BACKENDS
    server {
        listen 127.0.0.1:ADMIN;
        client_max_body_size 8m;
        location / { content_by_lua_block { spinguard.admin() } }
    }
    server {
        listen 127.0.0.1:PORT LISTEN;
        location / { proxy_pass http://backend; proxy_connect_timeout 2s; LOCATION }
        SERVER
    }
}
`

// need skips a test whose programs are missing, or fails it in CI.
func need(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		_, err := exec.LookPath(p)
		if _, err2 := os.Stat(p); err == nil || err2 == nil {
			continue
		}
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatalf("%s is missing", p)
		}
		t.Skipf("%s is missing", p)
	}
}

const modules = "/usr/lib/nginx/modules"

func startProxy(t testing.TB, o proxyOptions) *proxy {
	t.Helper()
	need(t, "nginx", modules+"/ngx_http_lua_module.so")
	if os.Geteuid() != 0 {
		t.Skip("needs root, to change the workers' user")
	}
	o.workers, o.backends = max(o.workers, 1), max(o.backends, 3)
	if o.dict == "" {
		o.dict = "4m"
	}
	ports := freePorts(t, o.backends+2)
	p := &proxy{
		t: t, dir: t.TempDir(), port: ports[0], admin: ports[1], ports: ports[2:],
		client: &http.Client{Timeout: 5 * time.Second},
	}
	for _, dir := range []string{p.dir, filepath.Dir(p.dir)} { // the workers' user must get in
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(p.dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(p.config(o)), 0o644); err != nil {
		t.Fatal(err)
	}
	p.start(conf)
	return p
}

func (p *proxy) config(o proxyOptions) string {
	lua := luaDir(p.t)
	backends := ""
	for _, port := range p.ports {
		backends += fmt.Sprintf("server { listen 127.0.0.1:%d; location / { return 200 \"%d\"; } %s }\n", port, port, o.backend)
	}
	jit := ""
	if o.jitOff {
		jit = "jit.off()"
	}
	conf := strings.NewReplacer("MODULES", modules, "WORKERS", fmt.Sprint(o.workers), "DIR", p.dir, "LUA", lua,
		"DICT", o.dict, "OPTIONS", o.options, "INIT", o.init, "BACKENDS", backends, "ADMIN", fmt.Sprint(p.admin),
		"PORT", fmt.Sprint(p.port), "SERVER", o.server, "HTTP", o.http, "JIT", jit, "LOCATION", o.location, "UPSTREAM", o.upstream, "LISTEN", o.listen).Replace(proxyConf)
	return strings.ReplaceAll(conf, "DIR", p.dir)
}

func (p *proxy) start(conf string) {
	p.t.Helper()
	p.cmd = exec.Command("nginx", "-p", p.dir, "-c", conf, "-e", filepath.Join(p.dir, "error.log"))
	var stderr bytes.Buffer
	p.cmd.Stderr = &stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.stop)
	for range 300 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err == nil && len(p.workers()) > 0 {
			c.Close()
			return
		}
		if err == nil {
			c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatalf("nginx does not listen: %s\n%s", stderr.String(), p.log())
}

// luaDir returns where the library lies. It opens each file, so that the
// cache of `go test` knows that they matter.
func luaDir(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "lua")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// stop ends the master and whatever worker does not listen to it.
func (p *proxy) stop() {
	if p.t.Failed() {
		p.t.Logf("error log:\n%s", p.log())
	}
	workers := p.workers()
	_ = p.cmd.Process.Signal(unix.SIGTERM)
	done := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
		for _, pid := range append(workers, p.workers()...) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		<-done
	}
}

func (p *proxy) log() string {
	b, _ := os.ReadFile(filepath.Join(p.dir, "error.log"))
	if len(b) > 8000 {
		b = b[len(b)-8000:]
	}
	return string(b)
}

// workers returns the children of the master.
func (p *proxy) workers() []int {
	pid := p.cmd.Process.Pid
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var pids []int
	for _, s := range strings.Fields(string(b)) {
		var n int
		if _, err := fmt.Sscan(s, &n); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

func (p *proxy) get(path string) (int, string) {
	p.t.Helper()
	resp, err := p.client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// getOnce asks over a connection of its own, so any worker may answer.
func (p *proxy) getOnce(path string) (int, string) {
	p.t.Helper()
	web := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	code, b := ask(web, "GET", fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), "")
	return code, string(b)
}

// reload has the master start new workers, and waits for all of them.
func (p *proxy) reload() {
	p.t.Helper()
	before := p.workers()
	if err := p.cmd.Process.Signal(unix.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
	fresh := func() (n int) {
		for _, pid := range p.workers() {
			if !slices.Contains(before, pid) {
				n++
			}
		}
		return n
	}
	eventually(p.t, "new workers", func() bool { return fresh() >= len(before) })
	p.client.CloseIdleConnections()
}

// served asks n times and counts the answers by backend port.
func (p *proxy) served(n int) map[string]int {
	p.t.Helper()
	got := map[string]int{}
	for range n {
		code, body := p.get("/")
		if code != 200 {
			p.t.Fatalf("status %d: %s", code, body)
		}
		got[body]++
	}
	return got
}

func (p *proxy) adminRequest(method, path, body string) (int, map[string]any) {
	p.t.Helper()
	req, _ := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", p.admin, path), strings.NewReader(body))
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		p.t.Fatalf("%s %s: status %d: %q: %v", method, path, resp.StatusCode, b, err)
	}
	return resp.StatusCode, v
}

// publish sends weights for the first backends and returns the version.
func (p *proxy) publish(weights ...any) int {
	p.t.Helper()
	code, v := p.adminRequest("PUT", "/upstreams/backend", p.peers(weights...))
	if code != 200 {
		p.t.Fatalf("publish %v: status %d: %v", weights, code, v)
	}
	return int(v["version"].(float64))
}

func (p *proxy) peers(weights ...any) string {
	var list []map[string]any
	for i, w := range weights {
		list = append(list, map[string]any{"address": p.peer(i), "weight": w})
	}
	b, err := json.Marshal(list)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func (p *proxy) peer(i int) string { return fmt.Sprintf("127.0.0.1:%d", p.ports[i]) }

func (p *proxy) ledger() *Ledger {
	p.t.Helper()
	l, err := OpenLedger(filepath.Join(p.dir, "run", "ledger"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = l.Close() })
	return l
}

// eventually waits for something that happens outside of this process.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
