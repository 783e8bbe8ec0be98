package config

import (
	"os"
	"strings"
	"testing"
)

func TestExamplesOfCulprits(t *testing.T) {
	text, err := os.ReadFile("../../docs/culprits.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) != 3 {
		t.Errorf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		example, _, _ := strings.Cut(b, "```")
		if c, err := Parse([]byte(example)); err != nil || len(c.Culprits) == 0 {
			t.Errorf("%v in\n%s", err, example)
		}
	}
}

func TestBadGoPprof(t *testing.T) {
	for text, want := range map[string]string{
		"go_pprof: [{proxy: caddy, url: \"http://10.0.0.1:2019/debug/pprof\"}]": "loopback",
		"go_pprof: [{proxy: caddy, url: \"ftp://127.0.0.1/\"}]":                 "loopback",
		"go_pprof: [{url: \"http://127.0.0.1:2019/debug/pprof\"}]":              "beginning of a proxy's name",
		"request_budget: {cpu: 1ms}":                                            "request_budget.cpu",
		"request_budget: {offences: 3}":                                         "no request is ever over it",
		"request_budget: {within: 1ms}":                                         "request_budget.within",
		"request_budget: {quarantine: 1h}":                                      "rails.quarantine_max, which is 5m0s",
		"request_budget: {cpus: 1ms}":                                           "no such key here",
		"request_budget: 200ms":                                                 "is not a map of keys",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
