package balancer

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// refusedPage is where error_page sends what the balancer phase refused.
const refusedPage = `location @refused { content_by_lua_block { spinguard.refused() } log_by_lua_block { spinguard.log() } }`

// halfSent begins a request of which the last byte of the body is missing, so
// it has passed guard() and waits. finish sends that and returns the answer.
func (p *proxy) halfSent() (finish func() *http.Response) {
	p.t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	before := strings.Count(p.log(), "let through")
	_, _ = io.WriteString(c, "POST /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\na")
	eventually(p.t, "guard lets it through", func() bool { return strings.Count(p.log(), "let through") > before })
	return func() *http.Response {
		_, _ = io.WriteString(c, "b")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			p.t.Fatal(err)
		}
		return resp
	}
}

// Two requests pass guard() while one place is left. The one that comes too
// late gets 503 from the error page; without one all that a stock nginx knows
// in the balancer phase is 502.
func TestLastPlaceLostAfterGuard(t *testing.T) {
	for page, want := range map[string]int{"": 502, "error_page 502 503 @refused;": 503} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			p := startProxy(t, proxyOptions{
				workers: 1, init: options(", max_inflight = 1, tries = 1"), server: refusedPage,
				location: `access_by_lua_block { spinguard.guard("backend") ngx.log(ngx.WARN, "let through") } log_by_lua_block { spinguard.log() } ` + page,
			})
			b := newBusyBackend(t)
			p.publishAddress(b.address)
			p.get("/")
			eventually(t, "log() is known to be called", func() bool { return p.metric(counter("requests_finished")) == 1 })
			first, second := p.halfSent(), p.halfSent()
			done := make(chan int)
			go func() { done <- first().StatusCode }()
			eventually(t, "the place is taken", func() bool { return b.now.Load() == 1 })
			resp := second()
			if resp.StatusCode != want || want == 503 && resp.Header.Get("Retry-After") != "1" {
				t.Errorf("status %d, Retry-After %q, want %d", resp.StatusCode, resp.Header.Get("Retry-After"), want)
			}
			if n := p.metric(counter("rejected_bound")); n != 1 {
				t.Errorf("%v refused requests are counted", n)
			}
			b.release()
			if code := <-done; code != 200 {
				t.Errorf("the first one: status %d", code)
			}
		})
	}
}

// The page says 503 of what was refused, also without guard(), and leaves what
// failed as it was.
func TestRefusedPage(t *testing.T) {
	const page = "error_page 502 503 504 @refused; "
	p := startProxy(t, proxyOptions{
		workers: 1, init: options(", eject_after = false"), location: page,
		server: refusedPage + "location /plain { proxy_pass http://plain; " + page + " } location /own { " + page + " return 504; } location /guarded { proxy_pass http://backend; " + phases + page + "}",
		http:   `upstream plain { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("plain") } }`,
	})
	dead := freePorts(t, 1)
	for _, name := range []string{"backend", "plain"} {
		if code, _ := p.put(name, fmt.Sprintf(`["127.0.0.1:%d"]`, dead[0])); code != 200 {
			t.Fatalf("publish: status %d", code)
		}
	}
	for path, want := range map[string]int{"/": 502, "/plain": 502, "/guarded": 502, "/own": 504} {
		if code, h := p.getAs("c", path); code != want || h.Get("Retry-After") != "" {
			t.Errorf("%s: status %d, Retry-After %q, want %d", path, code, h.Get("Retry-After"), want)
		}
	}
	for _, name := range []string{"backend", "plain"} {
		if code, _ := p.adminRequest("PUT", "/upstreams/"+name, `{"force": true, "peers": []}`); code != 200 {
			t.Fatalf("emptied: status %d", code)
		}
	}
	for _, path := range []string{"/", "/plain", "/guarded"} {
		if code, h := p.getAs("c", path); code != 503 || fmt.Sprint(h["Retry-After"]) != "[10]" {
			t.Errorf("%s emptied: status %d, Retry-After %q, want 503 and 10", path, code, h["Retry-After"])
		}
	}
}
