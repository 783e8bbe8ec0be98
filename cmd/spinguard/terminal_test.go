package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"
)

// TestMain lets TestPager run this program in a terminal: it shows a text of so
// many lines.
func TestMain(m *testing.M) {
	lines, err := strconv.Atoi(os.Getenv("SPINGUARD_TEST_SHOW"))
	if err != nil {
		os.Exit(m.Run())
	}
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	e := env{ctx: context.Background(), stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, terminal: term.IsTerminal(int(os.Stdout.Fd()))}
	if err := e.show(text.String()); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// screen is a real terminal, held by a tmux server of the test's own.
type screen struct {
	t    *testing.T
	sock string
}

func newScreen(t *testing.T, width, height int, command string) screen {
	t.Helper()
	need(t, "tmux")
	dir, err := os.MkdirTemp("", "tm")
	if err != nil {
		t.Fatal(err)
	}
	s := screen{t, filepath.Join(dir, "s")}
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), command+"; echo THE END; sleep 60")
	t.Cleanup(func() { s.tmux("kill-server"); _ = os.RemoveAll(dir) })
	return s
}

func (s screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.sock}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// until waits for the screen to show something and returns it.
func (s screen) until(what string, ok func(string) bool, capture ...string) string {
	s.t.Helper()
	var text string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if text = s.tmux(append([]string{"capture-pane", "-p"}, capture...)...); ok(text) {
			return text
		}
	}
	s.t.Fatalf("the screen never shows %s:\n%s", what, text)
	return ""
}

// The live view in a real terminal: drawn in place, narrower after a resize,
// without colours where they are not wanted, and gone with Ctrl-C.
func TestWatchInATerminal(t *testing.T) {
	a := startAgent(t, "")
	bin, _ := binary()
	command := fmt.Sprintf("%s workers --watch --socket %s/agent.sock", bin, a.run)
	ready := func(text string) bool { return strings.Contains(text, "mode observe") }

	s := newScreen(t, 100, 12, command)
	s.until("its head", ready)
	s.tmux("resize-window", "-x", "44", "-y", "5")
	s.until("a head that is cut to 44 columns", func(text string) bool {
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		return ready(text) && strings.Contains(lines[0], "…") && strings.Count(text, "mode observe") == 1
	})
	s.tmux("send-keys", "C-c")
	s.until("the end", func(text string) bool { return strings.Contains(text, "THE END") })

	colours := func(text string) bool { return strings.Contains(text, "\x1b[1m") || strings.Contains(text, "\x1b[3") }
	plain := newScreen(t, 100, 12, "NO_COLOR=1 "+command)
	if text := plain.until("its head", ready, "-e"); colours(text) {
		t.Errorf("colours in spite of NO_COLOR: %q", text)
	}
	out, err := exec.Command("sh", "-c", command+" | cat").CombinedOutput()
	if err != nil || strings.Contains(string(out), "\x1b") {
		t.Errorf("in a pipe: %v, %q", err, out)
	}
}

// A long text goes through the pager on a terminal, and only there.
func TestPager(t *testing.T) {
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, 80, 10, "PAGER='head -3 | sed s/^/paged-/' SPINGUARD_TEST_SHOW=40 "+bin)
	s.until("three paged lines", func(text string) bool {
		return strings.Count(text, "paged-line ") == 3 && strings.Contains(text, "THE END")
	})
	short := newScreen(t, 80, 10, "PAGER='sed s/^/paged-/' SPINGUARD_TEST_SHOW=4 "+bin)
	short.until("a short text as it is", func(text string) bool {
		return !strings.Contains(text, "paged") && strings.Contains(text, "line 3") && strings.Contains(text, "THE END")
	})
	cmd := exec.Command("sh", "-c", bin+" | cat")
	cmd.Env = append(os.Environ(), "PAGER=false", "SPINGUARD_TEST_SHOW=40")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "line ") != 40 {
		t.Errorf("in a pipe: %v, %q", err, out)
	}
}
