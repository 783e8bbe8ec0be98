package balancer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fatalWeights are the pairs that hang, starve or crash today's balancers, as
// they are written in JSON, and the word that their refusal is counted by.
var fatalWeights = []struct{ name, a, b, reason string }{
	{"0,-1", "0", "-1", "weight_negative"},
	{"-1,0", "-1", "0", "weight_negative"},
	{"-1,1", "-1", "1", "weight_negative"},
	{"text nan", `"nan"`, "1", "weight_type"},
	{"bare NaN", "1", "NaN", "weight_nan"},
	{"text inf", `"inf"`, "1", "weight_type"},
	{"text -inf", `"-inf"`, "1", "weight_type"},
	{"text 1e999", `"1e999"`, "1", "weight_type"},
	{"bare Infinity", "Infinity", "1", "weight_infinite"},
	{"bare 1e999", "1e999", "1", "weight_infinite"},
	{"0.1,0.3", "0.1", "0.3", "weight_fraction"},
	{"0.7,0.2", "0.7", "0.2", "weight_fraction"},
	{"abc", `"abc"`, "1", "weight_type"},
	{"text 0x10", `"0x10"`, "1", "weight_type"},
	{"1e9", "1e9", "1", "weight_range"},
	{"2^53+2", "9007199254740994", "1", "weight_range"},
	{"1e300", "1e300", "1", "weight_range"},
	{"all text 0", `"0"`, `"0"`, "all_zero"},
	{"all 0", "0", "0", "all_zero"},
	{"true", "true", "1", "weight_type"},
	{"null", "null", "1", "weight_type"},
}

func (p *proxy) refusals(reason string) float64 {
	return p.metric(fmt.Sprintf("spinguard_balancer_refused_updates_total{reason=%q}", reason))
}

// Each of them, by name, through the admin handler and through the watched
// file: refused, counted, and what served goes on serving. fatal.lua does the
// same through update() and the interface of lua-resty-balancer.
func TestFatalInputsThroughEveryPublisher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upstreams.json")
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := startProxy(t, proxyOptions{workers: 2, init: `spinguard.watch("` + path + `")`})
	p.publish(1, 1)
	want := map[string]float64{}
	var file []string
	for i, c := range fatalWeights {
		list := fmt.Sprintf(`[{"address":%q,"weight":%s},{"address":%q,"weight":%s}]`, p.peer(0), c.a, p.peer(1), c.b)
		code, v := p.adminRequest("PUT", "/upstreams/backend", list)
		if code != 422 || v["reason"] != c.reason {
			t.Errorf("%s: status %d %v, want %s", c.name, code, v, c.reason)
		}
		if code, _ := p.put("new", list); code != 422 {
			t.Errorf("%s as the first version: status %d", c.name, code)
		}
		file = append(file, fmt.Sprintf(`"backend%d":%s`, i, list))
		want[c.reason] += 3
	}
	file = append(file, `"backend":`+p.peers(3, 1))
	if err := os.WriteFile(path, []byte("{"+strings.Join(file, ",")+"}"), 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the good one in the file is taken", func() bool {
		_, v := p.adminRequest("GET", "/upstreams/backend", "")
		return v["published"] == 2.0
	})
	for reason, n := range want {
		eventually(t, fmt.Sprintf("%v refused for %s", n, reason), func() bool { return p.refusals(reason) >= n })
	}
	if _, v := p.adminRequest("GET", "/upstreams", ""); len(v["upstreams"].([]any)) != 1 {
		t.Errorf("upstreams %v, want only the good one", v)
	}
	if got := p.served(16); got[fmt.Sprint(p.ports[0])] != 12 && got[fmt.Sprint(p.ports[0])] != 11 && got[fmt.Sprint(p.ports[0])] != 13 {
		t.Errorf("%v, want shares of 3 and 1", got)
	}
}

// The fatal lists go to a picker of the user's own that hangs on them, with a
// cap: no request sees an error.
func TestFatalInputsThroughACappedPicker(t *testing.T) {
	capped := strings.Replace(fatalPicker, "raw = true,", "raw = true, steps = 10000,", 1)
	p := startProxy(t, proxyOptions{init: capped})
	p.publish(1, 1)
	for _, c := range fatalWeights {
		list := fmt.Sprintf(`[{"address":%q,"weight":%s},{"address":%q,"weight":%s}]`, p.peer(0), c.a, p.peer(1), c.b)
		p.put("backend", list)
		for range 4 {
			if code, body := p.get("/"); code != 200 {
				t.Errorf("%s: status %d %s", c.name, code, body)
			}
		}
	}
}
