package balancer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	phases  = `access_by_lua_block { spinguard.guard("backend") } log_by_lua_block { spinguard.log() } proxy_next_upstream error timeout;`
	clients = `client = function() return ngx.var.http_x_client or ngx.var.remote_addr end`
)

func options(more string) string {
	return `spinguard.upstream("backend", { ` + clients + more + ` })`
}

// getAs asks as one of many clients.
func (p *proxy) getAs(client, path string) (int, http.Header) {
	p.t.Helper()
	req, _ := http.NewRequest("GET", fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), nil)
	req.Header.Set("X-Client", client)
	req.Header.Set("X-Spinguard", "?")
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, nil
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header
}

func (p *proxy) metric(name string) float64 {
	p.t.Helper()
	resp, err := p.client.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.admin))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := fmt.Fprint(&b, readAll(resp)); err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			if _, err := fmt.Sscan(value, &v); err == nil {
				return v
			}
		}
	}
	return 0
}

func readAll(resp *http.Response) string {
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

func gauge(name string) string { return `spinguard_balancer_` + name + `{upstream="backend"}` }

func counter(name string) string {
	return "spinguard_balancer_" + name + `_total{upstream="backend"}`
}

// One client sends requests that make every backend close the connection. No
// peer goes down for it, others see no error, the client is refused.
func TestMalformedRequestsOfOneClient(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(""), location: phases, backend: "location /bad { return 444; }",
	})
	p.publish(1, 1, 1)
	for range 20 {
		if code, _ := p.getAs("good", "/"); code != 200 {
			t.Fatalf("a good request: status %d", code)
		}
	}
	codes := map[int]int{}
	for range 50 {
		code, h := p.getAs("bad", "/bad")
		codes[code]++
		if code == 503 && h.Get("Retry-After") == "" {
			t.Error("refused without Retry-After")
		}
		if code, h := p.getAs("good", "/"); code != 200 || !strings.Contains(h.Get("X-Spinguard"), "out=0") {
			t.Fatalf("another client: status %d, %s", code, h.Get("X-Spinguard"))
		}
	}
	if codes[502] > 5 || codes[503] < 45 {
		t.Errorf("the malformed request: %v, want it refused after the first", codes)
	}
	if code, _ := p.getAs("bad", "/"); code != 200 {
		t.Errorf("another request of the same client: status %d", code)
	}
	if n := p.metric(counter("ejections")); n != 0 {
		t.Errorf("%v ejections", n)
	}
	if n := p.metric(counter("rejected_poison")); n < 45 {
		t.Errorf("%v rejections are counted", n)
	}
}

// A peer that nobody can connect to is taken out, whoever asks; and the
// retries hide it.
func TestDeadPeerIsTakenOut(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(", eject_time = 1, slow_start = 0"), location: phases})
	dead := freePorts(t, 1)[0]
	body := fmt.Sprintf(`[%q,%q,"127.0.0.1:%d"]`, p.peer(0), p.peer(1), dead)
	if code, _ := p.put("backend", body); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	eventually(t, "the dead peer is out", func() bool {
		code, h := p.getAs("c", "/")
		if code != 200 {
			t.Fatalf("status %d", code)
		}
		return strings.Contains(h.Get("X-Spinguard"), "out=1")
	})
	before := p.metric(counter("tries_unconnected"))
	for range 30 {
		p.getAs("c", "/")
	}
	if after := p.metric(counter("tries_unconnected")); after != before {
		t.Errorf("%v tries went to a peer that is out", after-before)
	}
	eventually(t, "the peer is tried again", func() bool { p.getAs("c", "/"); return p.metric(counter("ejections")) >= 2 })
	if !strings.Contains(p.log(), "is out for 2 s, time 2") {
		t.Error("the second time is not longer than the first")
	}
}

// Not more than a tenth of the peers, at least one, go out; with too many
// gone all are used.
func TestEjectionIsBounded(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(", tries = 1, eject_time = 100"), location: phases})
	dead := freePorts(t, 3)
	body := fmt.Sprintf(`[%q,"127.0.0.1:%d","127.0.0.1:%d","127.0.0.1:%d"]`, p.peer(0), dead[0], dead[1], dead[2])
	if code, _ := p.put("backend", body); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	var last http.Header
	for range 60 {
		_, last = p.getAs("c", "/")
	}
	if got := last.Get("X-Spinguard"); !strings.Contains(got, "out=1") {
		t.Errorf("%s, want one peer out", got)
	}
	if p.metric(counter("ejections_capped")) == 0 {
		t.Error("the bound is not counted")
	}
}

// When everything fails, retries are a fifth of the requests and not double.
func TestRetryBudget(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(", eject_after = 0, retry_min = 0"), location: phases})
	dead := freePorts(t, 3)
	body := fmt.Sprintf(`["127.0.0.1:%d","127.0.0.1:%d","127.0.0.1:%d"]`, dead[0], dead[1], dead[2])
	if code, _ := p.put("backend", body); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	const n = 200
	for range n {
		p.getAs("c", "/")
	}
	retries := p.metric(counter("tries_unconnected")) - n
	if retries < n/5-5 || retries > n/5+15 {
		t.Errorf("%v retries for %d requests, want a fifth and the 10 saved up", retries, n)
	}
	if p.metric(counter("retries_denied")) < n/2 {
		t.Error("denied retries are not counted")
	}
}

func TestAdmissionControl(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(", rate = 1, burst = 5"), location: phases})
	p.publish(1, 1)
	codes := map[int]int{}
	for range 30 {
		code, h := p.getAs("c", "/")
		codes[code]++
		if code == 429 && h.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if codes[200] < 5 || codes[200] > 8 || codes[200]+codes[429] != 30 {
		t.Errorf("%v, want the burst of 5 and then 429", codes)
	}
}

func TestBoundOfRequestsInFlight(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", max_inflight = 2, tries = 1"), location: phases, backends: 2,
		backend: "location /slow { content_by_lua_block { ngx.sleep(0.5) ngx.print('x') } }",
	})
	p.publish(1, 1)
	p.getAs("c", "/")
	codes := make(chan int, 20)
	for range 20 {
		go func() { code, _ := p.getAs("c", "/slow"); codes <- code }()
	}
	got := map[int]int{}
	for range 20 {
		got[<-codes]++
	}
	if got[200] != 4 {
		t.Errorf("%v, want 4 answers: two at each of two peers", got)
	}
	if n := p.metric(counter("rejected_bound")); n != 16 {
		t.Errorf("%v rejected at the bound, want 16", n)
	}
	if n := p.metric(gauge("requests_in_flight")); n != 0 {
		t.Errorf("%v requests in flight at the end", n)
	}
}

func TestRouteAndPeerQuarantine(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(""), location: phases})
	p.publish(1, 1, 1)
	l, now := p.ledger(), time.Now()
	until := now.Add(time.Minute)
	for _, e := range []Entry{
		{Kind: KindRoute, Upstream: "backend", Subject: "GET /poison", Until: until},
		{Kind: KindRoute, Upstream: "backend", Subject: "GET /cart.v1/*/pay", Until: until},
		{Kind: KindRoute, Subject: "/deep/**", Until: until},
		{Kind: KindPeer, Upstream: "backend", Subject: p.peer(1), Until: until},
	} {
		if _, err := l.Add(e, now); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the route is refused", func() bool { code, _ := p.getAs("c", "/poison?x=1"); return code == 503 })
	for path, want := range map[string]int{
		"/other": 200, "/cart.v1/17/pay": 503, "/cart.v1/ab-c/pay?x=1": 503, "/cart.v1/17/pay/more": 200, "/cart.v1/1/7/pay": 200,
		"/cartxv1/17/pay": 200, "/cart.v1/17": 200, "/deep/a/b/c": 503, "/deep": 200,
	} {
		if code, _ := p.getAs("c", path); code != want {
			t.Errorf("%s: status %d, want %d", path, code, want)
		}
	}
	if got := p.served(30); got[fmt.Sprint(p.ports[1])] != 0 {
		t.Errorf("a peer in quarantine serves: %v", got)
	}
}

func TestNoVersionLeftIs503(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(""), location: phases})
	p.publish(1)
	l, now := p.ledger(), time.Now()
	if _, err := l.Add(Entry{Kind: KindVersion, Upstream: "backend", Version: 1, Until: now.Add(time.Minute)}, now); err != nil {
		t.Fatal(err)
	}
	eventually(t, "503 with Retry-After", func() bool {
		code, h := p.getAs("c", "/")
		return code == 503 && h.Get("Retry-After") != ""
	})
}

func TestHashAndLeastOnNginx(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, location: phases,
		init: options(`, picker = "hash", key = function() return ngx.var.arg_key end`),
	})
	p.publish(1, 1, 1)
	seen := map[string]bool{}
	for i := range 30 {
		_, first := p.get(fmt.Sprintf("/?key=%d", i))
		for range 3 {
			if _, again := p.get(fmt.Sprintf("/?key=%d", i)); again != first {
				t.Errorf("key %d: %s, then %s", i, first, again)
			}
		}
		seen[first] = true
	}
	if len(seen) != 3 {
		t.Errorf("30 keys use %d of 3 peers", len(seen))
	}

}

// One client can't take a peer out, however many requests it makes up; several
// clients with several requests can.
func TestOneClientTakesNoPeerOut(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", tries = 1"), location: phases, backends: 1, backend: "location /bad { return 444; }",
	})
	p.publish(1)
	for i := range 20 {
		p.getAs("bad", fmt.Sprintf("/bad%d", i))
	}
	if n := p.metric(counter("ejections")); n != 0 {
		t.Errorf("%v ejections for one client", n)
	}
	for i := range 3 {
		p.getAs(fmt.Sprintf("client%d", i), fmt.Sprintf("/bad%d", i))
	}
	if n := p.metric(counter("ejections")); n != 1 {
		t.Errorf("%v ejections for four clients and three requests, want 1", n)
	}
	if code, h := p.getAs("good", "/"); code != 200 {
		t.Errorf("the only peer is out and not used: status %d, %s", code, h.Get("X-Spinguard"))
	}
}

// A retry that was allowed and not needed goes back to the budget.
func TestUnusedRetriesGoBack(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", eject_after = 0, retry_min = 0, retry_budget = 0"), location: phases,
	})
	p.publish(1, 1)
	for range 30 {
		p.getAs("c", "/")
	}
	body := fmt.Sprintf(`[%q,"127.0.0.1:%d"]`, p.peer(0), freePorts(t, 1)[0])
	if code, _ := p.put("backend", body); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	failed := 0
	for range 60 {
		if code, _ := p.getAs("c", "/"); code != 200 {
			failed++
		}
	}
	if retried := p.metric(counter("tries_unconnected")) - float64(failed); retried != 10 {
		t.Errorf("%v requests were saved by a retry, want the 10 of the budget", retried)
	}
}

func TestLeastLoadedAvoidsASlowPeer(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, location: phases, init: options(`, picker = "least"`), backends: 2,
		backend: `location /slow { content_by_lua_block {
			if ngx.var.server_port == ngx.var.arg_port then ngx.sleep(0.05) end
			ngx.print(ngx.var.server_port) } }`,
	})
	p.publish(1, 1)
	slow := fmt.Sprint(p.ports[0])
	got := 0
	for range 100 {
		if _, body := p.get("/slow?port=" + slow); body == slow {
			got++
		}
	}
	// Both draws hit the slow one in a quarter of the cases.
	if got > 40 {
		t.Errorf("the slow peer served %d of 100", got)
	}
}
