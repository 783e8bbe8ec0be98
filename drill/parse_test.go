package drill

import (
	"strings"
	"testing"
	"time"
)

const goodCase = `name: shop
kind: A
about: >
  text with {{.Braces}}
proxy: nginx
workers: 2
config: nginx.conf
healthy:
  method: GET
  path: /shop/{{.Port}}
  headers:
    X-Port: "{{.Port9}}"
trigger:
  - method: PUT
    path: /a
    body: '[{{.Port1}}]'
  - path: /b
    count: 8
    parallel: 4
    timeout_ms: 250
agent:
  act_after: 1s
expect:
  verdict: runaway
  within_ms: 5000
  peer: "127.0.0.1:{{.Port2}}"
  workers_stuck: 2
  heal: evict
prove:
  watch_ms: 7
  anything: else
`

func TestEveryEmbeddedCaseParses(t *testing.T) {
	names := Names()
	if len(names) < 26 {
		t.Fatalf("only %d scenarios: %v", len(names), names)
	}
	for _, n := range names {
		sc, err := Find(n)
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if sc.rate <= 0 || sc.patient <= 0 {
			t.Errorf("%s: rate %d, patience %v", n, sc.rate, sc.patient)
		}
	}
}

func TestParseCase(t *testing.T) {
	c, err := ParseCase("x/case.yaml", []byte(goodCase))
	if err != nil {
		t.Fatal(err)
	}
	if c.Agent.ActAfter != time.Second || c.Prove.WatchMS != 7 {
		t.Errorf("act_after %v, watch_ms %d", c.Agent.ActAfter, c.Prove.WatchMS)
	}
	first, second := c.Trigger[0], c.Trigger[1]
	if first.Count != 1 || first.Parallel != 1 || first.TimeoutMS != 1000 || first.BodyRepeat != 1 {
		t.Errorf("defaults of a trigger: %+v", first)
	}
	if second.Count != 8 || second.Parallel != 4 || second.TimeoutMS != 250 {
		t.Errorf("second trigger: %+v", second)
	}
}

func TestParseCaseSaysWhere(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"unknown key", "workers: 2", "worker: 2", "line 6: field worker not found among the keys of a case"},
		{"unknown key of a request", "  path: /shop", "  paths: /shop", "line 10: field paths not found"},
		{"wrong type", "workers: 2", "workers: two", "line 6: cannot unmarshal"},
		{"kind", "kind: A", "kind: Z", `case.yaml:2: kind: "Z" is not one of`},
		{"verdict of another kind", "verdict: runaway", "verdict: blocked", `case.yaml:24: expect.verdict: "blocked" does not fit kind A`},
		{"heal", "heal: evict", "heal: pray", `case.yaml:28: expect.heal: "pray"`},
		{"missing bound", "  within_ms: 5000\n", "", "case.yaml:24: expect.within_ms: 0 is not between"},
		{"more stuck than there are", "workers_stuck: 2", "workers_stuck: 3", "case.yaml:27: expect.workers_stuck: 3 of 2"},
		{"count", "count: 8", "count: -1", "case.yaml:18: trigger.2.count: -1"},
		{"path", "path: /b", "path: b", `case.yaml:17: trigger.2.path: "b" does not begin with /`},
		{"folder in config", "config: nginx.conf", "config: ../nginx.conf", "case.yaml:7: config:"},
		{"name", "name: shop", "name: ../shop", "case.yaml:1: name:"},
		{"workers", "workers: 2", "workers: 0", "case.yaml:6: workers: 0"},
		{"act_after", "act_after: 1s", "act_after: -1s", "case.yaml:22: agent.act_after: -1s"},
		{"not a duration", "act_after: 1s", "act_after: soon", "line 22: cannot unmarshal"},
		{"huge body", "    timeout_ms: 250", "    body: aaaaaaaaaa\n    body_repeat: 100000000", "trigger.2.body_repeat: body of 1000000000 bytes"},
		{"not YAML", "name: shop", "name: [", "case.yaml: line"},
		{"two documents", "prove:", "---\nprove:", "more than one document"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(goodCase, tt.from, tt.to, 1)
			if text == goodCase {
				t.Fatal("the test changes nothing")
			}
			_, err := ParseCase("x/case.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v\nwant one with %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
		})
	}
}

func TestParseEmptyAndBig(t *testing.T) {
	if _, err := ParseCase("x", nil); err == nil || !strings.Contains(err.Error(), "x: empty") {
		t.Errorf("empty: %v", err)
	}
	if _, err := ParseCase("x", make([]byte, caseFileMax+1)); err == nil || !strings.Contains(err.Error(), "not a case") {
		t.Errorf("big: %v", err)
	}
}

func TestLoadCaseOfNoFolder(t *testing.T) {
	if _, err := LoadCase(t.TempDir()); err == nil || !strings.Contains(err.Error(), "case.yaml") {
		t.Errorf("error is %v", err)
	}
}

func FuzzParseCase(f *testing.F) {
	f.Add([]byte(goodCase))
	for _, n := range caseNames() {
		data, err := embedded.ReadFile(casesDir + "/" + n + "/" + caseFile)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCase("x", data)
		if err != nil {
			return
		}
		if p := check(c); p != nil {
			t.Errorf("accepted, but %s: %s", p.key, p.text)
		}
		_, _ = c.filled(newVars("/run", "/case", 20000)) // must not panic
	})
}
