// Package docs holds the documentation; it has tests only.
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/watchdog/judge"
)

var block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

func blocks(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		list = append(list, m[1])
	}
	return list
}

// The quick start works as written, from the package to its removal, on a clean
// Debian.
func TestQuickstart(t *testing.T) {
	if os.Getuid() != 0 {
		lacks(t, "not root")
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		lacks(t, "no mmdebstrap")
	}
	list := blocks(t, "quickstart.md")
	if list[0] != "make package\n" {
		t.Fatalf("the first block shall build, and does %q", list[0])
	}
	run(t, "sh", "-ec", list[0])
	var script strings.Builder
	for i, b := range list[1:] {
		fmt.Fprintf(&script, "echo \"== block %d, after $SECONDS s\"\n", i+2)
		if strings.Contains(b, "libnginx-mod") { // whose package reloads nginx
			fmt.Fprintf(&script, "untouched\n%stouched\n", b)
		} else {
			script.WriteString(b)
		}
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	packages, _ := filepath.Glob("../build/spinguard_*.deb")
	if len(packages) != 1 {
		t.Fatalf("make package left %q, not one package", packages)
	}
	out := run(t, "scripts/debian.sh", "run", file, "build/"+filepath.Base(packages[0]))
	t.Log(out)
	for _, want := range []string{"nginx@0.0.0.0:80", "nginx@127.0.0.1:18080", `"version":1`, "weight_negative", "gcd-nan passed", "answers of nginx"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// run runs a command in the root of the project and returns what it says.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = ".."
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Every alert and every verdict has its section in the operating guide.
func TestOperatingGuideIsComplete(t *testing.T) {
	guide, err := os.ReadFile("operating.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, v := range []judge.Verdict{judge.Healthy, judge.Saturated, judge.Suspect, judge.Runaway, judge.Blocked, judge.Spinning, judge.LockVictim} {
		names = append(names, string(v))
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		names = append(names, m[1])
	}
	for _, name := range names {
		if !strings.Contains(string(guide), "\n### "+name+"\n") {
			t.Errorf("%s has no section in operating.md", name)
		}
	}
}

// The translations hold the same commands.
func TestTranslationsHaveTheSameCommands(t *testing.T) {
	want, got := blocks(t, "quickstart.md"), blocks(t, "quickstart.zh-CN.md")
	if len(want) == 0 || strings.Join(want, "--\n") != strings.Join(got, "--\n") {
		t.Errorf("the blocks of quickstart.zh-CN.md differ from those of quickstart.md")
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
