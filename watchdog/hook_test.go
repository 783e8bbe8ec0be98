package watchdog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/watchdog/respond"
)

var shop = respond.Culprit{Proxy: "nginx", Upstream: "shop", Version: "2"}

func TestHookAppendsOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine")
	for range 2 {
		if err := appendLine(path, "{{.Upstream}} {{.Version}}", shop); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "shop 2\nshop 2\n" {
		t.Errorf("file %q", got)
	}
}

func TestANameCantForgeALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine")
	forged := respond.Culprit{Upstream: "shop\nmedia", Version: "2"}
	if err := appendLine(path, "{{.Upstream}} {{.Version}}", forged); err == nil {
		t.Error("a line break in a name was written")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made all the same")
	}
}

func TestHookCommandGetsItsArgumentsWithoutAShell(t *testing.T) {
	tricky := respond.Culprit{Upstream: "$(id); `id` *", Version: "2"}
	out, err := runCommand([]string{"/bin/echo", "{{.Upstream}}", "{{.Version}}"}, time.Minute, tricky)
	if err != nil || out != "$(id); `id` * 2\n" {
		t.Errorf("output %q, %v", out, err)
	}
}

func TestHookCommandIsEndedInTime(t *testing.T) {
	_, err := runCommand([]string{"/bin/sleep", "600"}, 50*time.Millisecond, shop)
	if err == nil || !strings.Contains(err.Error(), "did not end within 50ms") {
		t.Errorf("a command without an end: %v", err)
	}
}

func TestHookOutputIsBounded(t *testing.T) {
	out, err := runCommand([]string{"/usr/bin/head", "-c", "100000", "/dev/zero"}, time.Minute, shop)
	if err != nil || len(out) != hookOutputMax {
		t.Errorf("%d bytes kept, %v; want %d", len(out), err, hookOutputMax)
	}
}
