package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// need skips a test without a program, or fails it where everything must be
// there.
func need(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
	return ""
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

// server is a private proxy in a temporary directory.
type server struct {
	t    testing.TB
	dir  string
	port int
	exe  string
	pid  int // master
	args []string
}

const nginxConf = `
user root;
%[3]s
pid %[1]s/nginx.pid;
error_log %[1]s/error.log notice;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
    fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
    large_client_header_buffers 4 32k;
    %[4]s
    server {
        listen 127.0.0.1:%[2]d;
        location / { return 200 "pong"; }
        %[5]s
    }
}
`

type nginxOptions struct {
	exe                  string
	main, http, location string // pieces of configuration
	lua                  bool
	args                 []string // before the executable, such as unshare
}

func luaModules(t testing.TB) string {
	const dir = "/usr/lib/nginx/modules/"
	for _, m := range []string{"ndk_http_module.so", "ngx_http_lua_module.so"} {
		if _, err := os.Stat(dir + m); err != nil {
			if os.Getenv("REQUIRE_BPF") == "1" {
				t.Fatalf("%s is not installed", m)
			}
			t.Skipf("%s is not installed", m)
		}
	}
	return "load_module " + dir + "ndk_http_module.so; load_module " + dir + "ngx_http_lua_module.so;\n"
}

func startNginx(t testing.TB, o nginxOptions) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: o.exe}
	if s.exe == "" {
		s.exe = need(t, "nginx")
	}
	if err := os.Chmod(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if o.lua {
		o.main = luaModules(t) + o.main
	}
	if !strings.Contains(o.main, "worker_processes") {
		o.main += "worker_processes 2;"
	}
	conf := fmt.Sprintf(nginxConf, s.dir, s.port, o.main, o.http, o.location)
	s.write("nginx.conf", conf)
	s.args = append(append([]string{}, o.args...), s.exe, "-p", s.dir, "-c", s.dir+"/nginx.conf")
	s.run(s.args...)
	t.Cleanup(s.stop)
	s.pid = s.readPID("nginx.pid")
	s.waitServing()
	return s
}

func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) run(args ...string) {
	s.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	var out bytes.Buffer
	log, err := os.Create(filepath.Join(s.dir, "start.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		_, _ = io.Copy(&out, log)
		text, _ := os.ReadFile(log.Name())
		s.t.Fatalf("%v: %v\n%s", args, err, text)
	}
}

func (s *server) readPID(name string) int {
	s.t.Helper()
	var pid int
	eventually(s.t, "pid file "+name, func() bool {
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

func (s *server) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", s.port, path) }

func (s *server) waitServing() {
	s.t.Helper()
	eventually(s.t, "an answer", func() bool {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.port), time.Second)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

// stop ends the master, which ends its workers, and then every process that
// still runs from the server's directory or with it as prefix.
func (s *server) stop() {
	pids := s.processes()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range s.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processes lists the processes of this server: those that hold its log open
// or name its directory in their arguments.
func (s *server) processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args := strings.Join(cmdline(pid), " ")
		if strings.Contains(args, s.dir) || s.holdsLog(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *server) holdsLog(pid int) bool {
	for fd := range 32 {
		if strings.HasPrefix(fdTarget(pid, fd), s.dir+"/") {
			return true
		}
	}
	return false
}

// eventually waits for a condition of another process; half a minute is for ever.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("still waiting for %s after half a minute", what)
}

func newFinder(t testing.TB) *Finder {
	t.Helper()
	f, err := NewFinder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// scan returns the proxy with the given master, or nil.
func scan(t testing.TB, f *Finder, master int) *Proxy {
	t.Helper()
	proxies, err := f.Scan()
	if err != nil {
		t.Log(err)
	}
	for _, p := range proxies {
		if p.Master == master {
			return &p
		}
	}
	return nil
}

// waitProxy scans until the proxy satisfies ok.
func waitProxy(t testing.TB, f *Finder, master int, what string, ok func(*Proxy) bool) *Proxy {
	t.Helper()
	var p *Proxy
	eventually(t, what, func() bool {
		p = scan(t, f, master)
		return p != nil && ok(p)
	})
	return p
}

func started(n int) func(*Proxy) bool {
	return func(p *Proxy) bool {
		ready := 0
		for _, w := range p.Workers {
			if w.Started && !w.Exiting {
				ready++
			}
		}
		return ready == n && len(p.Workers) == n
	}
}

func kill(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// copyExe gives a renamed copy of an executable.
func copyExe(t testing.TB, from, name string) string {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// hang opens a connection, sends a request that will not be answered and
// leaves the connection open until the test ends.
func hang(t testing.TB, s *server, request string) {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { _ = c.Close() }) })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
}
