package balancer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPublishAndShares(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1})
	if code, body := p.get("/"); code != 502 {
		t.Errorf("nothing published: status %d %s, want 502", code, body)
	}
	if v := p.publish(5, "0", 3); v != 1 {
		t.Errorf("first version is %d", v)
	}
	got := p.served(80)
	for i, want := range []int{50, 0, 30} {
		if n := got[fmt.Sprint(p.ports[i])]; n != want {
			t.Errorf("peer %d served %d of 80, want %d", i, n, want)
		}
	}
	if v := p.publish(5, 0, 3); v != 1 {
		t.Errorf("the same peers made version %d", v)
	}
	if v := p.publish(1, 1, 1); v != 2 {
		t.Errorf("second version is %d", v)
	}
	if got := p.served(30); len(got) != 3 {
		t.Errorf("version 2 serves %v", got)
	}
}

func TestRefusals(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	p.publish(5, 3)
	a, b := p.peer(0), p.peer(1)
	list := func(weight string) string {
		return fmt.Sprintf(`[{"address":%q,"weight":%s},{"address":%q,"weight":1}]`, a, weight, b)
	}
	for _, c := range []struct{ name, body, want, reason string }{
		{"negative", list("-1"), "peer " + a + ": weight -1 is negative", "weight_negative"},
		{"nan string", list(`"nan"`), "peer " + a + `: weight "nan" is not a whole number`, "weight_type"},
		{"inf string", list(`"inf"`), "peer " + a, "weight_type"},
		{"bare NaN", list("NaN"), "peer " + a + ": weight NaN is not a number", "weight_nan"},
		{"bare Infinity", list("Infinity"), "peer " + a, "weight_infinite"},
		{"1e999", list("1e999"), "peer " + a, "weight_infinite"},
		{"fraction", list("0.1"), "peer " + a + ": weight 0.1 is not a whole number", "weight_fraction"},
		{"large", list("65536"), "peer " + a + ": weight 65536 is over 65535", "weight_range"},
		{"2^53+2", list("9007199254740994"), "peer " + a, "weight_range"},
		{"1e300", list("1e300"), "peer " + a, "weight_range"},
		{"abc", list(`"abc"`), "peer " + a, "weight_type"},
		{"boolean", list("true"), "peer " + a + ": weight true is not a number", "weight_type"},
		{"null", list("null"), "peer " + a, "weight_type"},
		{"object", list("{}"), "peer " + a + ": weight a table is not a number", "weight_type"},
		{"hex", list("0x10"), "invalid JSON", "json"},
		{"twice", fmt.Sprintf(`[%q,%q]`, a, a), "peer " + a + ": is there twice", "duplicate"},
		{"no port", `["10.0.0.1"]`, "peer 10.0.0.1", "address"},
		{"name", `["example.com:80"]`, "peer example.com:80", "address"},
		{"port 0", `["10.0.0.1:0"]`, "peer 10.0.0.1:0", "address"},
		{"port 65536", `["10.0.0.1:65536"]`, "peer 10.0.0.1:65536", "address"},
		{"256", `["10.0.0.256:80"]`, "peer 10.0.0.256:80", "address"},
		{"newline in a path", `["unix:/a\nb"]`, "peer unix:/a?b", "address"},
		{"zero byte in a path", `["unix:/a\u0000b"]`, "peer unix:/a?b", "address"},
		{"octal", `["010.0.0.1:80"]`, "peer 010.0.0.1:80", "address"},
		{"twice, written differently", `["[::1]:80","[0:0:0:0:0:0:0:01]:80"]`, "peer [0:0:0:0:0:0:0:01]:80: is there twice", "duplicate"},
		{"twice, as IPv4", `["[::ffff:1.2.3.4]:80","[::FFFF:102:304]:80"]`, "is there twice", "duplicate"},
		{"no peers", `{"peers":null}`, "peers: null is not a list", "peers_type"},
		{"bad utf-8", list("\"\xff\""), `weight "?"`, "weight_type"},
		{"unknown field", fmt.Sprintf(`[{"address":%q,"wieght":3}]`, a), `unknown field "wieght"`, "unknown_field"},
		{"empty", "[]", "the list is empty", "empty"},
		{"all zero", fmt.Sprintf(`[{"address":%q,"weight":"0"},{"address":%q,"weight":0}]`, a, b), "every weight is 0", "all_zero"},
		{"cut", `[{"address":`, "invalid JSON", "json"},
		{"number", "5", "want a list", "json"},
		{"deep", strings.Repeat("[", 10000), "invalid JSON", "json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, v := p.adminRequest("PUT", "/upstreams/backend", c.body)
			text, _ := v["error"].(string)
			if code != 422 && code != 400 || !strings.Contains(text, c.want) || v["reason"] != c.reason {
				t.Errorf("status %d %v, want %q and reason %s", code, v, c.want, c.reason)
			}
		})
	}
	code, v := p.adminRequest("GET", "/upstreams/backend", "")
	if code != 200 || v["published"].(float64) != 1 {
		t.Errorf("after the refusals: %v", v)
	}
	if got := p.served(16); got[fmt.Sprint(p.ports[0])] != 10 {
		t.Errorf("after the refusals: %v", got)
	}
}

func TestMinRatioAndForce(t *testing.T) {
	p := startProxy(t, proxyOptions{backends: 5})
	p.publish(1, 1, 1, 1, 1)
	code, v := p.adminRequest("PUT", "/upstreams/backend", p.peers(1, 1))
	if code != 422 || v["reason"] != "min_ratio" {
		t.Errorf("2 of 5 peers: status %d %v", code, v)
	}
	code, v = p.adminRequest("PUT", "/upstreams/backend", `{"force":true,"by":"test","peers":`+p.peers(1, 1)+`}`)
	if code != 200 || v["version"].(float64) != 2 {
		t.Errorf("forced: status %d %v", code, v)
	}
	if !strings.Contains(p.log(), "forced by test") {
		t.Error("a forced update is not logged")
	}
}

// What a publisher says of itself is kept in a bounded size, and is text.
func TestPublisherIsBounded(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	body := fmt.Sprintf("{\"peers\":%s,\"by\":\"me\xff\\n%s\"}", p.peers(1, 1), strings.Repeat("x", 100_000))
	if code, v := p.adminRequest("PUT", "/upstreams/backend", body); code != 200 {
		t.Fatalf("status %d %v", code, v)
	}
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	if by := v["versions"].([]any)[0].(map[string]any)["by"].(string); len(by) != 64 || !strings.HasPrefix(by, "me??x") {
		t.Errorf("by %q", by)
	}
}

func TestVersionsTellWhatChanged(t *testing.T) {
	p := startProxy(t, proxyOptions{init: `spinguard.wrap("backend", function(peers)
		return { find = function() return peers[1].address end } end, { raw = true })`})
	p.publish(5, 3)
	p.publish("0", 3, 7)
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	newest := v["versions"].([]any)[0].(map[string]any)
	got := fmt.Sprint(newest["changes"])
	for _, want := range []string{p.peer(0) + ` weight 5 -> "0"`, p.peer(2) + " added, weight 7"} {
		if !strings.Contains(got, want) {
			t.Errorf("changes %s, want %q in them", got, want)
		}
	}
}

func TestWatchedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upstreams.json")
	p := startProxy(t, proxyOptions{workers: 2, init: `spinguard.watch("` + path + `")`})
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published := func() float64 {
		_, v := p.adminRequest("GET", "/upstreams/backend", "")
		n, _ := v["published"].(float64)
		return n
	}
	write(`{"backend":` + p.peers(5, 3) + `,"other":[]}`)
	eventually(t, "version 1", func() bool { return published() == 1 })
	eventually(t, "the bad upstream is named", func() bool { return strings.Contains(p.log(), "other: peers: the list is empty") })
	write(`{"backend":[`)
	eventually(t, "the cut file is named", func() bool { return strings.Contains(p.log(), path+": invalid JSON") })
	write(`{"backend":` + p.peers(1, 1) + `}`)
	eventually(t, "version 2", func() bool { return published() == 2 })
	p.served(4)
}

// A row of versions that never served must not push out the one that did.
func TestTheLastGoodVersionIsKept(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	p.publish(1, 1)
	p.served(4)
	for i := range 12 {
		p.publish(2+i, 1)
	}
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	versions := v["versions"].([]any)
	last := versions[len(versions)-1].(map[string]any)
	if len(versions) != 6 || last["version"].(float64) != 1 {
		t.Errorf("%d versions are kept, the oldest is %v; want 6 and 1", len(versions), last["version"])
	}
}
