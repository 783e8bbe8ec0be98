// Package deploy holds what an operator installs; it has tests only.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/watchdog/config"
)

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		lacks(t, "no "+name)
	}
	return p
}

func TestExampleConfiguration(t *testing.T) {
	got, err := config.Load("agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The file says that it holds the defaults.
	want := config.Default()
	if got.Mode != want.Mode || got.StateDir != want.StateDir || got.RunDir != want.RunDir || got.Listen != want.Listen ||
		got.Thresholds != want.Thresholds || got.Rails != want.Rails || got.Retention != want.Retention {
		t.Errorf("agent.yaml differs from the defaults:\n%+v\n%+v", got, want)
	}
}

func TestExamplesInComments(t *testing.T) {
	data, err := os.ReadFile("agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, ok := strings.Cut(string(data), "An example, not a default.\n")
	if !ok {
		t.Fatal("the example is gone")
	}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(regexp.MustCompile(`(?m)^# `).ReplaceAllString(examples, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil || len(c.Culprits) != 1 || c.Hook.File == "" || c.Notify.Webhook == "" || c.Export.Pyroscope == "" || c.RequestBudget.CPU == 0 || len(c.GoPprof) != 1 {
		t.Errorf("%+v %v", c, err)
	}
}

func TestRules(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "prometheus/rules.yml"}, {"test", "rules", "prometheus/rules_test.yml", "prometheus/rules_nights_test.yml", "prometheus/rules_days_test.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Every alert is explained.
func TestAlertsAreExplained(t *testing.T) {
	rules, err := os.ReadFile("prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) < 10 {
		t.Errorf("%d alerts found", len(alerts))
	}
	for _, a := range alerts {
		if !strings.Contains(string(readme), "`"+a[1]+"`") {
			t.Errorf("%s is not in README.md", a[1])
		}
	}
}

// Every metric is described.
func TestMetricsAreDescribed(t *testing.T) {
	names, err := os.ReadFile("../web/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(names)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "spinguard_"), " ")
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("%s is not in README.md", name)
		}
	}
}

func TestUnit(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	// The program is not installed where the test runs: any will do.
	data, err := os.ReadFile("systemd/spinguard.service")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "spinguard.service")
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "ExecStart=spinguard", "ExecStart=/bin/true", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// Exposure on systemd's scale of 0 to 100; what is left is what the agent needs.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=34", file).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// lacks skips a test for want of something, or fails it where nothing may be
// skipped.
func lacks(t *testing.T, what ...any) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}
