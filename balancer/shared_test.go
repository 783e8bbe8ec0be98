package balancer

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fourWorkers is a proxy whose workers have a listen queue each, so that
// connections lie unevenly.
func fourWorkers(t testing.TB, o proxyOptions) *proxy {
	t.Helper()
	o.workers, o.listen = 4, "reuseport"
	o.location = phases + " add_header X-Worker $pid always; " + o.location
	return startProxy(t, o)
}

// connection is a client that keeps to one connection, and so to one worker.
type connection struct {
	web    *http.Client
	worker string
}

func (c *connection) ask(p *proxy, path string) int { return c.send(p, "GET", path) }

// slow is a request that waits at the backend; a POST, since a client that
// loses its connection sends a GET again, to the next worker.
func (c *connection) slow(p *proxy) int { return c.send(p, "POST", "/slow") }

func (c *connection) send(p *proxy, method, path string) int {
	req, _ := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), nil)
	resp, err := c.web.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_ = readAll(resp)
	c.worker = resp.Header.Get("X-Worker")
	return resp.StatusCode
}

// connections opens n of them and fails if they all lie at one worker. The
// first answer of each is by the path, which should cost nothing.
func (p *proxy) connections(n int, path string) []*connection {
	p.t.Helper()
	list, workers := make([]*connection, n), map[string]int{}
	for i := range list {
		c := &connection{web: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxConnsPerHost: 1}}}
		p.t.Cleanup(c.web.CloseIdleConnections)
		if code := c.ask(p, path); code == 0 {
			p.t.Fatal("no connection")
		}
		workers[c.worker]++
		list[i] = c
	}
	if len(workers) < 2 {
		p.t.Fatalf("%d connections lie at %d workers", n, len(workers))
	}
	return list
}

// unevenly sends n requests: four of five over the first connection, the
// others over all the rest at the same time. It counts the statuses.
func (p *proxy) unevenly(list []*connection, n int, path string) map[int]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	codes := map[int]int{}
	for i, c := range list {
		share := n / 5 / (len(list) - 1)
		if i == 0 {
			share = n - share*(len(list)-1)
		}
		wg.Go(func() {
			for range share {
				code := c.ask(p, path)
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return codes
}

const ping = `location /ping { return 204; add_header X-Worker $pid always; }`

// What one upstream may take is one number for all workers, however the
// connections lie: 40 requests are let through, not 10 in each worker.
func TestRateHoldsOverAllWorkers(t *testing.T) {
	p := fourWorkers(t, proxyOptions{init: options(", rate = 0.001, burst = 40"), server: ping})
	p.publish(1, 1)
	codes := p.unevenly(p.connections(12, "/ping"), 200, "/")
	if codes[200] != 40 || codes[429] != 160 {
		t.Errorf("%v, want the burst of 40 and 429 for the rest", codes)
	}
	p.reload()
	if code, _ := p.get("/"); code != 429 {
		t.Errorf("after a reload: status %d, want 429", code)
	}
}

// One worker that gets all the requests has the whole budget.
func TestRetryBudgetHoldsOverAllWorkers(t *testing.T) {
	p := fourWorkers(t, proxyOptions{init: options(", eject_after = 0, retry_min = 0"), server: ping})
	dead := freePorts(t, 2)
	if code, _ := p.put("backend", fmt.Sprintf(`["127.0.0.1:%d","127.0.0.1:%d"]`, dead[0], dead[1])); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	const n = 300
	codes := p.unevenly(p.connections(12, "/ping"), n, "/")
	eventually(t, "all are logged", func() bool { return p.metric(counter("requests_finished")) == n })
	retries := p.metric(counter("tries_unconnected")) - n
	// What has been earned since a worker's last look, less than a retry
	// each, is not in the budget yet; some are refused when two want the last.
	if retries > n/5+10 || retries < n/5+10-10 || codes[502] != n {
		t.Errorf("%v retries for %d requests (%v), want a fifth and the 10 saved up", retries, n, codes)
	}
	if got := p.metric(counter("retries_granted")); got != retries {
		t.Errorf("%v retries are counted, %v were made", got, retries)
	}
}

// Without a budget each request has all its tries.
func TestNoRetryBudget(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2, init: options(", eject_after = false, retry_budget = false, tries = 3"), location: phases})
	dead := freePorts(t, 3)
	if code, _ := p.put("backend", fmt.Sprintf(`["127.0.0.1:%d","127.0.0.1:%d","127.0.0.1:%d"]`, dead[0], dead[1], dead[2])); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	for range 20 {
		p.get("/")
	}
	eventually(t, "three tries each", func() bool { return p.metric(counter("tries_unconnected")) == 60 })
}

// busyBackend counts how many requests are in it at once; they end when
// released is closed.
type busyBackend struct {
	address   string
	now, most atomic.Int64
	released  chan struct{}
}

func newBusyBackend(t testing.TB) *busyBackend {
	b := &busyBackend{released: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			return
		}
		n := b.now.Add(1)
		defer b.now.Add(-1)
		for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
		}
		select {
		case <-b.released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(b.release)
	b.address = strings.TrimPrefix(srv.URL, "http://")
	return b
}

func (b *busyBackend) release() {
	select {
	case <-b.released:
	default:
		close(b.released)
	}
}

// slowly sends a slow request over each connection.
func (p *proxy) slowly(list []*connection, codes chan<- int) {
	for _, c := range list {
		go func() { codes <- c.ask(p, "/slow") }()
	}
}

// refused reads statuses until as many were 503.
func refused(t *testing.T, codes <-chan int, n int) {
	t.Helper()
	for range n {
		if code := <-codes; code != 503 {
			t.Errorf("status %d, want 503", code)
		}
	}
}

// Four requests at a peer are four over all workers, also those of workers
// that go on after a reload; and those of a killed worker are none.
func TestRequestsInFlightAreBoundedOverAllWorkers(t *testing.T) {
	p := fourWorkers(t, proxyOptions{init: options(", max_inflight = 4, tries = 1"), server: ping})
	b := newBusyBackend(t)
	p.publishAddress(b.address)
	list := p.connections(24, "/")
	codes := make(chan int, 100)
	// One after the other, so that no two race for the last place.
	for _, c := range list[:12] {
		before := b.now.Load()
		go func() { codes <- c.slow(p) }()
		eventually(t, "taken or refused", func() bool { return b.now.Load() > before || len(codes) > 0 })
		if b.now.Load() == 4 {
			break
		}
		for len(codes) > 0 {
			t.Fatalf("status %d with %d in flight", <-codes, b.now.Load())
		}
	}
	p.slowly(list[12:], codes)
	refused(t, codes, len(list)-12)
	p.reload()
	p.slowly(p.connections(8, "/ping"), codes)
	refused(t, codes, 8)
	if most := b.most.Load(); most != 4 {
		t.Errorf("%d requests at once, want 4", most)
	}
	for _, pid := range p.workers() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	eventually(t, "nothing is left of the killed workers", func() bool {
		code, _ := p.getOnce("/")
		return code == 200 && b.now.Load() == 0 && p.inFlight() == 0
	})
	b.most.Store(0)
	eventually(t, "four again", func() bool {
		if p.fillUp(b); b.most.Load() > 4 {
			t.Fatalf("%d requests at once", b.most.Load())
		}
		return b.now.Load() == 4
	})
}

// inFlight is metric for a time in which workers come and go.
func (p *proxy) inFlight() float64 {
	p.client.CloseIdleConnections()
	_, b := ask(p.client, "GET", fmt.Sprintf("http://127.0.0.1:%d/metrics", p.admin), "")
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, gauge("requests_in_flight")+" "); ok {
			return map[bool]float64{true: 0, false: 1}[strings.TrimSpace(value) == "0"]
		}
	}
	return -1
}

// fillUp sends one slow request more, over a connection of its own.
func (p *proxy) fillUp(b *busyBackend) {
	before := b.now.Load()
	done := make(chan struct{})
	go func() { defer close(done); _, _ = p.getOnce("/slow") }()
	for range 200 {
		select {
		case <-done:
			return
		case <-time.After(5 * time.Millisecond):
			if b.now.Load() > before {
				return
			}
		}
	}
}

// One new connection to a peer is one over all workers.
func TestNewConnectionsAreBoundedOverAllWorkers(t *testing.T) {
	p := fourWorkers(t, proxyOptions{
		init: options(", max_new = 0.001, keepalive = 8, tries = 1"), upstream: "keepalive 8;", server: ping,
		location: `proxy_http_version 1.1; proxy_set_header Connection "";`,
	})
	address, accepted := coldBackend(t, 20*time.Millisecond)
	p.publishAddress(address)
	codes := p.unevenly(p.connections(12, "/ping"), 100, "/")
	// 502: the place was lost to another request between guard() and balance().
	if accepted.Load() != 1 || codes[200] == 0 || codes[200]+codes[502]+codes[503] != 100 {
		t.Errorf("%v over %d connections, want one connection", codes, accepted.Load())
	}
}

// Where the dict has no room for a bound, requests are let through and that
// is counted.
func TestFullDictLetsThrough(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2, dict: "64k", init: options(", rate = 0.001, burst = 1, max_new = 0.001"), location: phases})
	p.publish(1, 1)
	for i, full := 0, 0; full < 20; i++ {
		if code, _ := p.put(fmt.Sprintf("u%d", i), p.peers(1, 1)); code == 507 {
			full++
		}
	}
	p.served(20)
	if n := p.metric(counter("bounds_unshared")); n < 20 {
		t.Errorf("%v are counted, want at least 20", n)
	}
}

// Counters go on over a reload and over the death of workers, and those of
// the old workers count too.
func TestCountersNeverGoBack(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2, init: options(""), location: phases})
	b := newBusyBackend(t)
	p.publishAddress(b.address)
	ask := func(n int) {
		for range n {
			eventually(t, "an answer", func() bool { code, _ := p.getOnce("/"); return code == 200 })
		}
	}
	ask(20)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = p.getOnce("/slow") }()
	eventually(t, "a request in flight", func() bool { return b.now.Load() == 1 })
	p.reload()
	ask(10)
	if n := p.metric(counter("requests_started")); n != 31 {
		t.Errorf("%v requests were started, want 31", n)
	}
	if n := p.metric(gauge("requests_in_flight")); n != 1 {
		t.Errorf("%v requests in flight, want that of the old worker", n)
	}
	b.release()
	<-done
	eventually(t, "the old worker's request is finished", func() bool { return p.metric(counter("requests_finished")) == 31 })
	killed := p.workers()
	for _, pid := range killed {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	p.client.CloseIdleConnections()
	ask(5)
	eventually(t, "all counted", func() bool { return p.metric(counter("requests_finished")) >= 36 })
	if n := p.metric(counter("requests_lost")); n != 0 {
		t.Errorf("%v requests are lost, none was in flight", n)
	}
}

// A failure that nginx answers with a page of its own (error_page loses
// ngx.ctx) is a failure of its peers all the same.
func TestErrorPageHidesNoFailure(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(""), backend: "location /bad { return 444; }",
		location: phases + ` error_page 502 /sorry;`,
		server:   `location /sorry { return 502 "sorry"; log_by_lua_block { spinguard.log() } }`,
	})
	p.publish(1, 1)
	for range 10 {
		p.getAs("good", "/")
	}
	codes := map[int]int{}
	for range 10 {
		code, _ := p.getAs("bad", "/bad")
		codes[code]++
	}
	if codes[502] > 2 || codes[503] < 8 {
		t.Errorf("%v, want the poison refused after the first", codes)
	}
	if got := p.metric(counter("tries_failure")); got != 2*float64(codes[502]) {
		t.Errorf("%v failures are counted for %d requests", got, codes[502])
	}
	if n := p.metric(gauge("requests_in_flight")); n != 0 {
		t.Errorf("%v requests in flight at the end", n)
	}
}

// A request that is answered by another upstream in the end counts for both;
// a subrequest, which nginx does not log, is only picked for.
func TestRedirectsAndSubrequests(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", eject_after = 0") + ` spinguard.upstream("other", {})`,
		location: phases + ` error_page 502 = @other;`,
		http:     `upstream other { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("other") } }`,
		server: `location @other { proxy_pass http://other; log_by_lua_block { spinguard.log() } }
			location /sub { content_by_lua_block { ngx.print(ngx.location.capture("/").body) } }`,
	})
	dead := freePorts(t, 2)
	if code, _ := p.put("backend", fmt.Sprintf(`["127.0.0.1:%d","127.0.0.1:%d"]`, dead[0], dead[1])); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	if code, _ := p.put("other", p.peers(1)); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	for range 5 {
		if code, body := p.get("/"); code != 200 || body != fmt.Sprint(p.ports[0]) {
			t.Fatalf("status %d: %s", code, body)
		}
	}
	got := map[string]float64{}
	for _, name := range []string{"requests_finished", "tries_unconnected", "tries_success"} {
		got[name] = p.metric(counter(name))
		got["other "+name] = p.metric(strings.Replace(counter(name), "backend", "other", 1))
	}
	want := map[string]float64{
		"requests_finished": 5, "tries_unconnected": 10, "tries_success": 0,
		"other requests_finished": 5, "other tries_unconnected": 0, "other tries_success": 5,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	p.put("backend", p.peers(1, 1))
	for range 5 {
		p.get("/sub")
	}
	if n := p.metric(gauge("requests_in_flight")); n != 0 {
		t.Errorf("%v requests in flight at the end", n)
	}
}
