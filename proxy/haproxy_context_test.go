package proxy

import (
	"fmt"
	"net"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// The pattern backtracks for minutes; HAProxy's own watchdog ends the process
// after 2 s of CPU, which is enough time to look.
const slowLua = `
core.register_action("slow", {"http-req"}, function(txn) string.find(string.rep("a", 3000), ".-.-.-b") end)
core.register_action("slow-answer", {"http-res"}, function(txn) string.find(string.rep("a", 3000), ".-.-.-b") end)
`

const shopConfig = `
global
  nbthread 2
  lua-load %[1]s/slow.lua
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend shop-front
  bind 127.0.0.1:%[2]d
  http-request lua.slow if { path /early }
  default_backend carts
backend carts
  http-request lua.slow if { path /request }
  http-response lua.slow-answer
  server first 127.0.0.1:%[3]d
backend unused
  server second 127.0.0.1:%[3]d
listen answers
  bind 127.0.0.1:%[3]d
  http-request return status 200 content-type text/plain string "pong"
`

func TestFindsContextOfStuckHAProxyThread(t *testing.T) {
	for path, want := range map[string]HAProxyContext{
		"/early":   {Frontend: "shop-front"},
		"/request": {Frontend: "shop-front", Backend: "carts"},
		"/pong":    {Frontend: "shop-front", Backend: "carts", Server: "first"},
	} {
		t.Run(path[1:], func(t *testing.T) {
			s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: need(t, "haproxy")}
			s.write("slow.lua", slowLua)
			s.write("haproxy.cfg", fmt.Sprintf(shopConfig, s.dir, s.port, freePort(t)))
			s.run(s.exe, "-D", "-f", s.dir+"/haproxy.cfg", "-p", s.dir+"/haproxy.pid")
			t.Cleanup(s.stop)
			s.pid = s.readPID("haproxy.pid")
			s.waitServing()
			p := waitProxy(t, newFinder(t), s.pid, "two threads", threads(2))
			checkContext(t, s, p, path, want)
		})
	}
}

func checkContext(t *testing.T, s *server, p *Proxy, path string, want HAProxyContext) {
	t.Helper()
	mem, err := procmem.Open(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	m, err := NewHAProxyMap(mem, p.Workers[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(m.proxies) < 4 {
		t.Errorf("proxies %v, want at least the four of the configuration", m.proxies)
	}
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	busy := busyWorker(t, p)
	window, regs := liveStack(t, busy)
	if got := m.Context(mem, window, regs...); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	idle := p.Workers[1-busy.Index]
	window, regs = liveStack(t, idle)
	if got := m.Context(mem, window, regs...); got != (HAProxyContext{}) {
		t.Errorf("an idle thread works for %+v", got)
	}
}
