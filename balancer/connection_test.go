package balancer

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// coldBackend counts the connections that it accepts; each answer takes some
// time.
func coldBackend(t testing.TB, takes time.Duration) (address string, accepted *atomic.Int64) {
	t.Helper()
	accepted = &atomic.Int64{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				accepted.Add(1)
			}
		},
	}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	return ln.Addr().String(), accepted
}

const keepAlive = phases + ` proxy_http_version 1.1; proxy_set_header Connection "";`

func (p *proxy) publishAddress(address string) {
	p.t.Helper()
	if code, _ := p.put("backend", fmt.Sprintf("[%q]", address)); code != 200 {
		p.t.Fatalf("publish: status %d", code)
	}
}

// What the library counts as opened is what the backend accepts, with a pool
// of nginx and without.
func TestConnectionsAreCounted(t *testing.T) {
	for name, c := range map[string]struct{ pool, options string }{
		"pool":     {"keepalive 2;", ", keepalive = 2"},
		"requests": {"keepalive 2; keepalive_requests 3;", ", keepalive = 2, keepalive_requests = 3"},
		"none":     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pool, opts := c.pool, c.options
			p := startProxy(t, proxyOptions{workers: 1, init: options(opts), location: keepAlive, upstream: pool})
			address, accepted := coldBackend(t, 20*time.Millisecond)
			p.publishAddress(address)
			for range 6 {
				p.atOnce(5)
			}
			opened, reused := p.metric(counter("connections_opened")), p.metric(counter("connections_reused"))
			if opened != float64(accepted.Load()) || opened+reused != 30 || pool != "" && reused == 0 {
				t.Errorf("opened %v and reused %v, the backend accepted %d", opened, reused, accepted.Load())
			}
		})
	}
}

// atOnce sends n requests together and returns how often each status came.
func (p *proxy) atOnce(n int) map[int]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	codes := map[int]int{}
	for range n {
		wg.Go(func() {
			code, _ := p.getAs("c", "/")
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
		})
	}
	wg.Wait()
	return codes
}

// A peer gets no more new connections than its bound; what is over it is told
// so at once.
func TestNewConnectionsAreBounded(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", max_new = 0.001, keepalive = 8, tries = 1"), location: keepAlive, upstream: "keepalive 8;",
	})
	address, accepted := coldBackend(t, 100*time.Millisecond)
	p.publishAddress(address)
	codes := p.atOnce(20)
	if codes[200] != 1 || codes[503] != 19 || accepted.Load() != 1 {
		t.Errorf("%v over %d connections, want one connection and 503 for the rest", codes, accepted.Load())
	}
	for range 5 {
		if code, _ := p.getAs("c", "/"); code != 200 {
			t.Errorf("the idle connection is not used: status %d", code)
		}
	}
	if n := p.metric(counter("rejected_bound")); n != 19 {
		t.Errorf("%v are counted", n)
	}
}

// A request whose worker is killed is no longer in flight, but lost.
func TestLostRequestsAreCounted(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(""), location: phases})
	address, _ := coldBackend(t, 10*time.Second)
	p.publishAddress(address)
	go p.getAs("c", "/")
	eventually(t, "a request in flight", func() bool { return p.metric(gauge("requests_in_flight")) == 1 })
	_ = unix.Kill(p.workers()[0], unix.SIGKILL)
	p.client.CloseIdleConnections()
	eventually(t, "the request is lost", func() bool {
		resp, err := p.client.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.admin))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text := readAll(resp)
		return strings.Contains(text, counter("requests_lost")+" 1\n") && strings.Contains(text, gauge("requests_in_flight")+" 0\n")
	})
}
