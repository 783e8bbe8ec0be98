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

// setUp makes a root of its own out of this host: an overlay whose changes go
// to memory. The namespaces end with the script, and all its processes.
const setUp = `
mount -t tmpfs none "$1"
mkdir "$1/up" "$1/work" "$1/root"
mount -t overlay overlay -o lowerdir=/,upperdir="$1/up",workdir="$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs none run
mount -t tmpfs none tmp
mkdir -p ."$2"
mount --bind "$2" ."$2"
ip link set lo up 2>/dev/null || true
cat >tmp/script
exec chroot . sh -c "cd '$2' && exec bash -euo pipefail /tmp/script"
`

// The quick start works as written, from the package to the drill.
func TestQuickstart(t *testing.T) {
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range []string{"unshare", "nginx", "curl", repo + "/build/tools/nfpm"} {
		if _, err := exec.LookPath(need); err != nil {
			lacks(t, "no "+need)
		}
	}
	dir := t.TempDir()
	const names = "-m"
	if exec.Command("unshare", names, "sh", "-ec", `mount -t tmpfs none "$1"; mkdir "$1/u" "$1/w" "$1/r"; mount -t overlay overlay -o lowerdir=/,upperdir="$1/u",workdir="$1/w" "$1/r"`, "sh", dir).Run() != nil {
		lacks(t, "no overlay of the root")
	}
	var script strings.Builder
	script.WriteString("trap 'for p in $(jobs -p); do kill $p; done; nginx -c /tmp/shop/nginx.conf -s quit 2>/dev/null || true' EXIT\n")
	for i, b := range blocks(t, "quickstart.md") {
		fmt.Fprintf(&script, "echo '== block %d'\n%s", i+1, b)
	}
	cmd := exec.Command("unshare", names, "sh", "-ec", setUp, "sh", dir, repo)
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, want := range []string{"nginx@127.0.0.1:18080", `"version":1`, "weight_negative", "gcd-nan passed"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
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
