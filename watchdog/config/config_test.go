package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

func TestEmptyMeansDefault(t *testing.T) {
	c, err := Parse(nil)
	if err != nil || c.Mode != Observe || c.Thresholds.Runaway != 300*time.Millisecond {
		t.Errorf("an empty text: %+v, %v; want the defaults", c, err)
	}
}

func TestValuesOverDefaults(t *testing.T) {
	c, err := Parse([]byte("mode: enforce\nthresholds: {act_after: 1s}\nculprits:\n- {frame: wrr.lua, upstream: name, version: version}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode != Enforce || c.Thresholds.ActAfter != time.Second || c.Thresholds.Suspect != 100*time.Millisecond || c.Culprits[0].Frame != "wrr.lua" {
		t.Errorf("read %+v", c)
	}
}

func TestErrorsNameLineKeyAndRemedy(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown key", "mode: observe\nmodes: 3\n", "line 2: modes: no such key here"},
		{"a list for a text", "node: [a]\n", "line 1: a list is not a text"},
		{"a unit on a number", "retention:\n  bytes: 10GB\n", "line 2: `10GB` is not a whole number"},
		{"a number for a map", "rails: 5\n", "line 1: `5` is not a map of keys"},
		{"unknown key below", "sampling:\n  rat: 3\n", "line 2: rat: no such key here"},
		{"bad word", "\nmode: kill\n", `line 2: mode: "kill" is none of ["observe" "enforce"]`},
		{"rate", "sampling:\n  rate: 100000\n", "line 2: sampling.rate: 100000 is not within 10 to 999"},
		{"duration", "thresholds:\n  suspect: fast\n", "line 2: `fast` is not a duration such as 300ms"},
		{"threshold", "thresholds:\n  runaway: 100ms\n", "line 2: thresholds.runaway: 100ms is not within 150ms to 1h"},
		{"listen", "listen: 0.0.0.0:80\n", `line 1: listen: "0.0.0.0" is not a loopback address`},
		{"relative", "state_dir: here\n", "is not an absolute path"},
		{"both hooks", "quarantine_hook: {file: /a, command: [/b]}\n", "line 1: quarantine_hook: file and command are both set"},
		{"template", "quarantine_hook: {file: /a, line: '{{.'}\n", "template"},
		{"rails", "rails:\n  panic_share: 2\n", "line 2: rails.panic_share"},
		{"two documents", "mode: observe\n---\nmode: enforce\n", "more than one YAML document"},
		{"not YAML", "mode: [", "line 1"},
		{"list for a map", "- a\n", "line 1"},
	}
	for _, test := range tests {
		_, err := Parse([]byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", test.name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "config.") {
			t.Errorf("%s: a Go type shows in %q", test.name, err)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file: %v, want its path in it", err)
	}
}

func TestDocumentation(t *testing.T) {
	const path = "../../docs/configuration.md"
	want := "# Configuration of the agent\n\nYAML, checked with line numbers by `spinguard doctor --config FILE` and at start. All keys are optional.\n\n" + Document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the code says (%v); run go test ./watchdog/config -update", path, err)
	}
	if strings.Contains(want, "|  |") {
		t.Error("a key without a meaning")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("mode: enforce\nrails: {evictions: 3}\n"))
	f.Add([]byte("culprits: [{frame: a}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse(text); err == nil && c.Sampling.Rate <= 0 {
			t.Errorf("took a rate of %d", c.Sampling.Rate)
		}
	})
}
