package watchdog

import (
	"os/exec"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// sleeper is a worker that was looked at while it slept.
func sleeper(t *testing.T) *worker {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	process, err := profiler.Open(cmd.Process.Pid, symbol.NewCache(4))
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{Worker: proxy.Worker{PID: cmd.Process.Pid, TID: cmd.Process.Pid, StartTime: process.StartTime()}, process: process, in: &instance{}}
	t.Cleanup(func() { _ = process.Close() })
	if w.looker, err = proxy.NewWatcher(w.Worker, proxy.NewCgroups()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.looker.Close)
	waitFor(t, "the process sleeps", func() bool {
		w.look, err = w.looker.Look()
		return err == nil && w.look.State == 'S' && w.look.SP != 0 && w.look.Syscall > 0
	})
	w.decision.Verdict, w.last.Now = judge.Blocked, time.Second
	return w
}

func TestTheStackOfABlockedWorkerIsThatOfItsSleep(t *testing.T) {
	a := &Agent{}
	w := sleeper(t)
	if !a.blockedStack(w) || len(w.result.Stack.Frames) == 0 || len(w.recent) != 1 {
		t.Errorf("a sleeping worker: %d frames, %d kept", len(w.result.Stack.Frames), len(w.recent))
	}
	for name, change := range map[string]func(*worker){
		"awake":                 func(w *worker) { w.look.SP = 0 },
		"asleep somewhere else": func(w *worker) { w.look.SP -= 512 },
	} {
		w := sleeper(t)
		change(w)
		if a.blockedStack(w) || len(w.recent) != 0 {
			t.Errorf("%s: its stack was taken", name)
		}
		w.last.Now += stackPatience
		if !a.blockedStack(w) || len(w.recent) != 0 {
			t.Errorf("%s: the verdict waits for ever", name)
		}
	}
}

func TestSameSleep(t *testing.T) {
	look := proxy.Look{SP: 1, PC: 2, Slices: 3}
	ran := proxy.Look{SP: 1, PC: 2, Slices: 4}
	whole := profiler.Result{Stack: stack.Stack{Frames: make([]stack.Frame, 2)}}
	cut := profiler.Result{Stack: stack.Stack{Frames: make([]stack.Frame, 2), Truncated: "frame 2: no rule"}}
	for _, c := range []struct {
		name  string
		after proxy.Look
		r     profiler.Result
		want  bool
	}{
		{"did not run", look, cut, true},
		{"ran and sleeps again", ran, whole, true},
		{"ran, and the stack is none", ran, cut, false},
		{"ran, and nothing was read", ran, profiler.Result{}, false},
		{"sleeps elsewhere", proxy.Look{SP: 9, PC: 2, Slices: 4}, whole, false},
		{"awake", proxy.Look{Slices: 4}, whole, false},
	} {
		if sameSleep(look, c.after, c.r) != c.want {
			t.Errorf("%s: want %v", c.name, c.want)
		}
	}
}
