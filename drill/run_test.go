package drill

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// need skips a test on a host without the programs, and fails it in CI.
func need(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			continue
		} else if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		} else {
			t.Skip(err)
		}
	}
	if n := "/usr/lib/nginx/modules/ngx_http_lua_module.so"; !exists(n) {
		t.Skip(n + " is not installed")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	t.Setenv("TMPDIR", t.TempDir()) // run directories of this test only
}

// The faults themselves are real, without any agent.
func TestFaultsAreReal(t *testing.T) {
	need(t, "nginx", "haproxy")
	for _, name := range []string{"gcd-nan", "case:gcd-nan", "os-execute", "haproxy-debug-loop"} {
		t.Run(name, func(t *testing.T) {
			sc, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			l := runWatched(t, t.Context(), sc, func(res Result, err error) {
				if err != nil || !res.Passed {
					t.Errorf("error %v, failures %q", err, res.Failures)
				}
				if res.Probe.OK == 0 {
					t.Error("no probe was answered")
				}
			})
			l.mustBeGone(t)
		})
	}
}

// leftover is what a run could leave behind.
type leftover struct {
	run  string
	pids []int
}

// runWatched runs a scenario without an agent and notes, when the fault is
// about to come, what must be gone afterwards.
func runWatched(t *testing.T, ctx context.Context, sc *Scenario, judge func(Result, error)) leftover {
	t.Helper()
	var left leftover
	res, err := Run(ctx, sc, Options{Mode: ModeNone, Out: t.TempDir(), Say: func(l Line) {
		if l.Kind == "trigger" {
			left = newestRun(t)
		}
	}})
	if left.run == "" {
		t.Fatal("the fault never came: ", err, res.Failures)
	}
	judge(res, err)
	return left
}

func newestRun(t *testing.T) leftover {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "spinguard-drill-*"))
	for _, d := range dirs {
		for _, f := range []string{"nginx.pid", "haproxy.pid"} {
			pid, err := readPID(filepath.Join(d, f))
			if err == nil {
				return leftover{d, append(children(pid), pid)}
			}
		}
	}
	t.Error("no run directory with a pid file")
	return leftover{}
}

func (l leftover) mustBeGone(t *testing.T) {
	t.Helper()
	if exists(l.run) {
		t.Errorf("%s is still there", l.run)
	}
	for _, pid := range l.pids {
		if lives(pid) {
			t.Errorf("process %d is still there: %s", pid, title(pid))
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func TestInterruptEndsEverything(t *testing.T) {
	need(t, "nginx")
	sc, err := Find("gcd-nan")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("ctrl-c")
	sc.Case.Expect.WithinMS = 60_000
	sc.Case.Expect.WorkersStuck = 0 // never seen: it would go on for a minute
	var left leftover
	_, err = Run(ctx, sc, Options{Mode: ModeNone, Out: t.TempDir(), Say: func(l Line) {
		if l.Kind == "trigger" {
			left = newestRun(t)
			cancel(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("error is %v, want %v", err, why)
	}
	left.mustBeGone(t)
}

func TestPanicEndsEverything(t *testing.T) {
	need(t, "nginx")
	sc, err := Find("gcd-nan")
	if err != nil {
		t.Fatal(err)
	}
	var left leftover
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = Run(t.Context(), sc, Options{Mode: ModeNone, Out: t.TempDir(), Say: func(l Line) {
			if l.Kind == "trigger" {
				left = newestRun(t)
				panic("here")
			}
		}})
	}()
	left.mustBeGone(t)
}

func TestPanicInAGoroutineEndsTheRun(t *testing.T) {
	ctx, abort := context.WithCancelCause(t.Context())
	l := &lab{abort: abort}
	l.guard(func() { panic("there") })
	if err := context.Cause(ctx); err == nil || !strings.Contains(err.Error(), "panic: there") {
		t.Errorf("cause is %v", err)
	}
}

func TestProxyThatDoesNotStart(t *testing.T) {
	need(t, "nginx")
	dir := t.TempDir()
	text := strings.Replace(goodCase, `/shop/{{.Port}}`, "/ping", 1)
	for name, data := range map[string]string{"case.yaml": text, "nginx.conf": "nonsense here;\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sc, err := FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), sc, Options{Mode: ModeNone, Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, res, `unknown directive "nonsense"`)
}
