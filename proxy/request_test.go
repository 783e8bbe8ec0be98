package proxy

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const loops = `
lua_package_path "/usr/share/lua/5.1/?.lua;;";
upstream backend {
    server 0.0.0.1;
    balancer_by_lua_block {
        if ngx.var.arg_good then
            require("ngx.balancer").set_current_peer("127.0.0.1", tonumber(ngx.var.server_port))
        else while true do end end
    }
}
`

const loopLocations = `
location /loop { content_by_lua_block { while true do end } }
location /inner { internal; content_by_lua_block { while true do end } }
location /outer { content_by_lua_block { ngx.location.capture("/inner", {args = "x=1"}) } }
location /balanced { proxy_pass http://backend; }
location /answered { proxy_pass http://backend/; header_filter_by_lua_block { while true do end } }
location /rewritten { rewrite ^ /loop?inside=1 last; }
`

// startLooper starts a nginx with one worker whose handlers never end.
func startLooper(t *testing.T, extra string) (*server, Worker) {
	t.Helper()
	s := startNginx(t, nginxOptions{lua: true, main: "worker_processes 1;" + extra, http: loops, location: loopLocations})
	p := waitProxy(t, newFinder(t), s.pid, "a worker", started(1))
	return s, p.Workers[0]
}

// liveStack stops a thread for a moment to copy its registers and its stack,
// as the sampler does without stopping it.
func liveStack(t testing.TB, w Worker) (procmem.Window, []uint64) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(w.TID); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PtraceDetach(w.TID) }()
	var status unix.WaitStatus
	if _, err := unix.Wait4(w.TID, &status, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	regs := pointerRegisters(t, w.TID)
	maps, err := procmem.ReadMaps(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	sp := regs[0]
	m, ok := maps.Find(sp)
	if !ok {
		t.Fatalf("stack pointer %#x lies in no mapping", sp)
	}
	mem, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	window := procmem.Window{Addr: sp &^ 7, Data: make([]byte, min(m.End-sp&^7, 16<<10))}
	if err := mem.ReadMemory(window.Addr, window.Data); err != nil {
		t.Fatal(err)
	}
	return window, regs
}

// findStuck waits until the worker does nothing else any more, then finds the
// request.
func findStuck(t testing.TB, w Worker) Request {
	t.Helper()
	busyWorker(t, &Proxy{Workers: []Worker{w}})
	mem, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	var r Request
	eventually(t, "a request on the stack", func() bool {
		window, regs := liveStack(t, w)
		var ok bool
		r, ok = FindRequest(mem, window, 0, regs...)
		return ok
	})
	return r
}

func TestFindsRequestOfStuckWorker(t *testing.T) {
	s, w := startLooper(t, "")
	before := time.Now().Truncate(time.Second)
	hang(t, s, "GET /loop/cart?token=secret HTTP/1.1\r\nX: y\r\nHost: Shop.example.com:81\r\n\r\n")
	r := findStuck(t, w)
	if got := r.Line(false); got != "GET /loop/cart?*** HTTP/1.1" {
		t.Errorf("line %q", got)
	}
	if got := r.Line(true); got != "GET /loop/cart?token=secret HTTP/1.1" {
		t.Errorf("line with query %q", got)
	}
	if r.Host != "Shop.example.com:81" || r.URI != "/loop/cart" || r.Subrequest || r.Cut {
		t.Errorf("host %q, URI %q, subrequest %v, cut %v", r.Host, r.URI, r.Subrequest, r.Cut)
	}
	if age := r.Started.Sub(before); age < -time.Second || age > time.Minute {
		t.Errorf("started at %s, the request was sent after %s", r.Started, before)
	}
	checkIdentity(t, w, r)
}

// checkIdentity: the same request is found again, by the stack and by its address alone.
func checkIdentity(t *testing.T, w Worker, r Request) {
	t.Helper()
	mem, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	window, _ := liveStack(t, w)
	if again, ok := IdentifyRequest(mem, window, 0); !ok || again != r.RequestID {
		t.Errorf("identity from the stack %+v, first %+v", again, r.RequestID)
	}
	if again, ok := IdentifyRequest(mem, procmem.Window{}, r.Addr); !ok || again != r.RequestID {
		t.Errorf("identity from the address %+v, first %+v", again, r.RequestID)
	}
}

func TestFindsSecondRequestOfConnection(t *testing.T) {
	s, w := startLooper(t, "")
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := io.ReadAtLeast(c, make([]byte, 4096), 20); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "POST /loop HTTP/1.0\r\nHost: b\r\nContent-Length: 0\r\n\r\n")
	r := findStuck(t, w)
	if r.Line(false) != "POST /loop HTTP/1.0" || r.Host != "b" {
		t.Errorf("line %q, host %q", r.Line(false), r.Host)
	}
}

func TestFindsHTTP2Request(t *testing.T) {
	curl := need(t, "curl")
	port := freePort(t)
	s := startNginx(t, nginxOptions{lua: true, main: "worker_processes 1;",
		http: fmt.Sprintf("server { listen 127.0.0.1:%d http2; location / { content_by_lua_block { while true do end } } }", port)})
	p := waitProxy(t, newFinder(t), s.pid, "a worker", started(1))
	cmd := exec.Command(curl, "-s", "-m", "30", "--http2-prior-knowledge", "-H", "Host: h2.example.com",
		fmt.Sprintf("http://127.0.0.1:%d/h2/path?key=secret", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := findStuck(t, p.Workers[0])
	if r.Line(false) != "GET /h2/path?*** HTTP/2.0" || r.Host != "h2.example.com" {
		t.Errorf("line %q, host %q", r.Line(false), r.Host)
	}
}

func TestFindsOtherRequests(t *testing.T) {
	long := "/loop/" + strings.Repeat("a", 20000)
	for _, c := range []struct {
		name, request, line, uri string
		subrequest               bool
	}{
		{"long", "GET " + long + "?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET " + long[:maxText-4] + "... HTTP/1.1", long[:maxText-4], false},
		{"subrequest", "GET /outer?a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /outer?*** HTTP/1.1", "/inner", true},
		{"rewritten", "GET /rewritten HTTP/1.1\r\nHost: x\r\n\r\n", "GET /rewritten HTTP/1.1", "/loop", false},
		{"absolute", "GET http://x/loop HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://x/loop HTTP/1.1", "/loop", false},
		{"0.9", "GET /loop\r\n", "GET /loop", "/loop", false},
		{"bytes", "GET /loop/\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n", `GET /loop/\xc3\xa4 HTTP/1.1`, `/loop/\xc3\xa4`, false},
		{"method", "PROPFIND /loop HTTP/1.1\r\nHost: x\r\n\r\n", "PROPFIND /loop HTTP/1.1", "/loop", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := startLooper(t, "")
			hang(t, s, c.request)
			r := findStuck(t, w)
			if r.Line(false) != c.line {
				t.Errorf("line %q, want %q", r.Line(false), c.line)
			}
			if !strings.HasPrefix(r.URI, c.uri) || r.Subrequest != c.subrequest {
				t.Errorf("URI %q, subrequest %v, want %q, %v", r.URI, r.Subrequest, c.uri, c.subrequest)
			}
		})
	}
}

func TestFindsUpstream(t *testing.T) {
	s, w := startLooper(t, "")
	hang(t, s, "GET /balanced HTTP/1.1\r\nHost: x\r\n\r\n")
	r := findStuck(t, w)
	if r.Upstream.Name != "backend" || r.Upstream.File != s.dir+"/nginx.conf" || r.Upstream.Line == 0 {
		t.Errorf("upstream %+v, want backend of %s", r.Upstream, s.dir)
	}
}

func TestFindsPeer(t *testing.T) {
	s := startNginx(t, nginxOptions{lua: true, http: loops, location: loopLocations})
	f := newFinder(t)
	p := waitProxy(t, f, s.pid, "two workers", started(2))
	hang(t, s, "GET /answered?good=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	busy := busyWorker(t, p)
	r := findStuck(t, busy)
	if want := fmt.Sprintf("127.0.0.1:%d", s.port); r.Upstream.Name != "backend" || r.Upstream.Peer != want {
		t.Errorf("upstream %+v, want backend with peer %s", r.Upstream, want)
	}
}

// busyWorker waits until one worker uses CPU all the time.
func busyWorker(t testing.TB, p *Proxy) (busy Worker) {
	t.Helper()
	first := make(map[int]uint64)
	for _, w := range p.Workers {
		first[w.TID] = cpuNanoseconds(t, w)
	}
	eventually(t, "a busy worker", func() bool {
		for _, w := range p.Workers {
			if cpuNanoseconds(t, w)-first[w.TID] > uint64(100*time.Millisecond) {
				busy = w
				return true
			}
		}
		return false
	})
	return busy
}

func TestIdleWorkerHasNoRequest(t *testing.T) {
	s, w := startLooper(t, "")
	if out, err := exec.Command(need(t, "curl"), "-s", s.url("/")).Output(); err != nil || string(out) != "pong" {
		t.Fatal(string(out), err)
	}
	mem, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	window, regs := liveStack(t, w)
	if r, ok := FindRequest(mem, window, 0, regs...); ok {
		t.Errorf("an idle worker has the request %q", r.Line(true))
	}
	kill(t, s.pid, syscall.SIGQUIT)
}
