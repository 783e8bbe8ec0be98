package balancer

import (
	"fmt"
	"strings"
	"testing"
)

// An upstream that is emptied by force refuses its requests clearly, and is
// filled again by the next update.
func TestEmptiedByForce(t *testing.T) {
	p := startProxy(t, proxyOptions{
		workers: 2, init: options("") + lostByWrap, location: phases,
		http: `upstream wrapped { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("wrapped") } }`,
		// Without guard() the balancer phase has to say it.
		server: `location /bare { proxy_pass http://backend; } location /wrapped { proxy_pass http://wrapped; }`,
	})
	p.publish(5, 3)
	p.served(4)
	const forced = `{"force": true, "by": "ann", "peers": []}`
	for _, name := range []string{"backend", "wrapped"} {
		if code, v := p.adminRequest("PUT", "/upstreams/"+name, "[]"); code != 422 || v["reason"] != "empty" {
			t.Errorf("%s without force: status %d %v", name, code, v)
		}
		if code, v := p.adminRequest("PUT", "/upstreams/"+name, forced); code != 200 {
			t.Errorf("%s with force: status %d %v", name, code, v)
		}
	}
	if code, h := p.getAs("c", "/"); code != 503 || h.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", code, h.Get("Retry-After"))
	}
	for _, path := range []string{"/bare", "/wrapped"} {
		if code, _ := p.getOnce(path); code != 502 {
			t.Errorf("%s: status %d, want 502", path, code)
		}
	}
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	newest := v["versions"].([]any)[0].(map[string]any)
	if newest["force"] != true || newest["by"] != "ann" || v["serving"] != 2.0 || fmt.Sprint(newest["peers"]) != "[]" {
		t.Errorf("admin shows %v, serving %v", newest, v["serving"])
	}
	if got := fmt.Sprint(newest["changes"]); !strings.Contains(got, p.peer(0)+" removed, weight 5") {
		t.Errorf("changes %s", got)
	}
	if !strings.Contains(p.log(), "update of backend forced by ann: it has no peers now") {
		t.Error("the log does not tell")
	}
	if n := p.metric("spinguard_balancer_forced_updates_total"); n != 2 {
		t.Errorf("%v forced updates are counted", n)
	}
	if n := p.metric(counter("rejected_empty")); n != 2 {
		t.Errorf("%v refused requests are counted", n)
	}
	if v := p.publish(1, 1); v != 3 {
		t.Errorf("the next version is %d", v)
	}
	if got := p.served(20); len(got) != 2 {
		t.Errorf("served by %v", got)
	}
}

// lostByWrap is a picker that would never come back from an empty list.
const lostByWrap = ` spinguard.wrap("wrapped", function(peers)
	while #peers == 0 do end
	return { find = function() return peers[1].address end } end)`

// Also forced, an update is checked: force is for what is missing, not for
// what is wrong.
func TestForceIsNoExcuse(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	p.publish(1, 1)
	for _, peers := range []string{p.peers(-1, 1), p.peers(0, "0"), `["10.0.0.1"]`, `"x"`} {
		code, v := p.adminRequest("PUT", "/upstreams/backend", `{"force": true, "peers": `+peers+`}`)
		if code != 422 {
			t.Errorf("%s: status %d %v", peers, code, v)
		}
	}
	p.served(4)
}

// A list without entries is a list, also for a client that is strict.
func TestEmptyListsOfTheAdminHandler(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	for path, want := range map[string]string{"/upstreams": `{"upstreams":[]}`, "/quarantines": `{"quarantines":[]}`} {
		_, b := ask(p.client, "GET", fmt.Sprintf("http://127.0.0.1:%d%s", p.admin, path), "")
		if got := strings.TrimSpace(string(b)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
