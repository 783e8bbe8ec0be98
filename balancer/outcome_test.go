package balancer

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Each way in which a try can end is counted as itself.
func TestEveryOutcomeIsCounted(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", tries = 1, eject_after = false"), location: phases + " proxy_read_timeout 1s;",
		backend: `location /bad { return 444; } location /slow { content_by_lua_block { ngx.sleep(3) } }`,
	})
	p.publish(1)
	p.get("/")
	p.get("/bad")
	p.get("/slow?late")
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://127.0.0.1:%d/slow?left", p.port), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		eventually(t, "a request in flight", func() bool { return p.metric(gauge("requests_in_flight")) == 1 })
		leave()
	}()
	if resp, err := p.client.Do(req); err == nil {
		resp.Body.Close()
		t.Error("the client did not leave")
	}
	if code, _ := p.put("backend", fmt.Sprintf(`["127.0.0.1:%d"]`, freePorts(t, 1)[0])); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	p.get("/")
	want := map[string]float64{"success": 1, "failure": 1, "timeout": 1, "aborted": 1, "unconnected": 1, "local": 0}
	got := map[string]float64{}
	eventually(t, "all are finished", func() bool { return p.metric(counter("requests_finished")) == 5 })
	for name := range want {
		got[name] = p.metric(counter("tries_" + name))
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// With two of three peers out the third could not carry the load: all are
// used.
func TestPanicUsesAllPeers(t *testing.T) {
	for _, c := range []struct {
		options string
		peers   int
	}{{"", 3}, {", panic = false", 1}} {
		p := startProxy(t, proxyOptions{workers: 1, init: options(c.options), location: phases})
		p.publish(1, 1, 1)
		l, now := p.ledger(), time.Now()
		for i := range 2 {
			e := Entry{Kind: KindPeer, Upstream: "backend", Subject: p.peer(i), Until: now.Add(time.Minute)}
			if _, err := l.Add(e, now); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "two are out", func() bool {
			_, h := p.getAs("c", "/")
			return strings.Contains(h.Get("X-Spinguard"), "out=2")
		})
		if got := p.served(30); len(got) != c.peers {
			t.Errorf("options %q: served by %v, want %d peers", c.options, got, c.peers)
		}
		if n := p.metric(counter("panics")); (n > 0) != (c.peers == 3) {
			t.Errorf("options %q: %v picks in panic", c.options, n)
		}
	}
}

// A peer that comes back gets a tenth of its share at first.
func TestPeerComesBackSlowly(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(", eject_time = 0.5, slow_start = 1000"), location: phases})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	if code, _ := p.put("backend", fmt.Sprintf(`[%q,%q]`, p.peer(0), address)); code != 200 {
		t.Fatalf("publish: status %d", code)
	}
	eventually(t, "the dead peer is out", func() bool { p.getAs("c", "/"); return p.metric(counter("ejections")) == 1 })
	if ln, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "back") })}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	eventually(t, "it serves again", func() bool { return p.served(1)["back"] == 1 })
	// Half would be its share; a tenth of its turns is 20 of 400.
	if got := p.served(400)["back"]; got == 0 || got > 80 {
		t.Errorf("%d of 400 are served by a peer in its slow start, want about 20", got)
	}
}

// The admin handler is for the machine itself; with a token, for who has it.
func TestAdminToken(t *testing.T) {
	p := startProxy(t, proxyOptions{options: `, token = "secret"`})
	for _, token := range []string{"", "Bearer wrong", "secret", "Bearer secret"} {
		req, _ := http.NewRequest("PUT", fmt.Sprintf("http://127.0.0.1:%d/upstreams/backend", p.admin), strings.NewReader(p.peers(1, 1)))
		req.Header.Set("Authorization", token)
		resp, err := p.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if want := map[bool]int{true: 200, false: 403}[token == "Bearer secret"]; resp.StatusCode != want {
			t.Errorf("%q: status %d, want %d", token, resp.StatusCode, want)
		}
	}
	p.served(4)
}

// Over a unix socket no token is needed, and a body over the bound is refused.
func TestAdminOverUnixSocket(t *testing.T) {
	p := startProxy(t, proxyOptions{
		http: `server { listen unix:DIR/admin.sock; client_max_body_size 32m; location / { content_by_lua_block { spinguard.admin() } } }`,
	})
	web := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", p.dir+"/admin.sock")
	}}}
	defer web.CloseIdleConnections()
	if code, b := ask(web, "PUT", "http://local/upstreams/backend", p.peers(1, 1)); code != 200 {
		t.Errorf("status %d %s", code, b)
	}
	big := "[" + strings.Repeat(" ", 9<<20) + "]"
	if code, b := ask(web, "PUT", "http://local/upstreams/backend", big); code != 400 || !strings.Contains(string(b), "too_big") {
		t.Errorf("9 MiB: status %d %s", code, b)
	}
	many := make([]string, 20001)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprintf("10.1.%d.%d:80", i/250, i%250))
	}
	if code, b := ask(web, "PUT", "http://local/upstreams/backend", "["+strings.Join(many, ",")+"]"); code != 422 || !strings.Contains(string(b), "too_many") {
		t.Errorf("20,001 peers: status %d %.200s", code, b)
	}
	if v := p.refusals("too_big"); v != 1 {
		t.Errorf("%v are counted", v)
	}
	p.served(4)
}
