package watchdog

import (
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// At whom a glance is enough, if the loop has turned.
func TestWhoIsGlancedAt(t *testing.T) {
	const now = time.Minute
	may := func(change func(*worker)) bool {
		w := &worker{Worker: proxy.Worker{Kind: proxy.Nginx, Started: true}, wordOK: true, lookedClosely: now - 500*time.Millisecond}
		w.look.Running, w.decision.Verdict = true, judge.Healthy
		change(w)
		return w.mayGlance(now)
	}
	for name, change := range map[string]func(*worker){
		"at work":                    func(*worker) {},
		"saturated":                  func(w *worker) { w.level, w.decision.Verdict = settled, judge.Saturated },
		"asleep elsewhere, long ago": func(w *worker) { w.napped = now - napsAgain },
	} {
		if !may(change) {
			t.Errorf("a worker that is %s is looked at each time", name)
		}
	}
	for name, change := range map[string]func(*worker){
		"suspected":               func(w *worker) { w.decision.Verdict = judge.Suspect },
		"standing still":          func(w *worker) { w.decision.Stall = 1 },
		"watched closely":         func(w *worker) { w.level = busy },
		"starting":                func(w *worker) { w.Started = false },
		"a Go process":            func(w *worker) { w.Kind = proxy.Go },
		"without a word":          func(w *worker) { w.wordOK = false },
		"at rest":                 func(w *worker) { w.look.Running, w.look.Repeated = false, true },
		"glanced at often enough": func(w *worker) { w.glances = mostGlances },
		"due for a close look":    func(w *worker) { w.lookedClosely = now - time.Second },
		"asleep elsewhere lately": func(w *worker) { w.napped = now - napsAgain + 1 },
	} {
		if may(change) {
			t.Errorf("a worker that is %s is only glanced at", name)
		}
	}
}

// glancedWord is no local variable, which might move.
var glancedWord atomic.Uint64

// A glance sees that the word has moved, and leaves the rest to a look.
func TestGlance(t *testing.T) {
	word := &glancedWord
	start, err := procmem.StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	info := proxy.Worker{Kind: proxy.Nginx, PID: os.Getpid(), TID: unix.Gettid(), StartTime: start, Started: true,
		Progress: proxy.Progress{Addr: uint64(uintptr(unsafe.Pointer(word))), Size: 8}}
	w := &worker{Worker: info, in: &instance{}, word: word.Load(), wordOK: true, lookedClosely: time.Hour}
	w.look.Running, w.decision.Verdict = true, judge.Healthy
	if w.process, err = profiler.Open(os.Getpid(), symbol.NewCache(4)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.process.Close() }()
	if w.looker, err = proxy.NewWatcher(info, proxy.NewCgroups()); err != nil {
		t.Fatal(err)
	}
	defer w.looker.Close()
	a := &Agent{clock: systemClock(), cfg: config.Default()}
	if a.glanceAt(w, 0) {
		t.Error("a word that stands still was enough")
	}
	for i := range mostGlances {
		word.Add(1)
		if !a.glanceAt(w, 0) || w.last.Progress != word.Load() || !w.last.ProgressOK || w.last.CPUTime == 0 || w.look.CPUTime != w.last.CPUTime || w.glances != i+1 {
			t.Errorf("glance %d: %+v after %d glances", i+1, w.last, w.glances)
		}
	}
	if word.Add(1); a.glanceAt(w, 0) {
		t.Error("one glance after the other, and never a look")
	}
}

// A sample that has just shown a turn of the loop is as good as a glance.
func TestSamplesSaveGlances(t *testing.T) {
	a := &Agent{clock: systemClock(), cfg: config.Default()}
	w := &worker{Worker: proxy.Worker{Kind: proxy.Nginx, Started: true}, in: &instance{}, word: 1, wordOK: true, lookedClosely: time.Hour}
	w.look.Running, w.decision.Verdict = true, judge.Healthy
	a.judge(w, judge.Observation{Now: time.Second, Weight: time.Millisecond, Progress: 2, ProgressOK: true})
	for i := range mostGlances {
		if !a.glanceAt(w, time.Second+lookEvery-1) {
			t.Errorf("glance %d: the sample was not enough", i+1)
		}
	}
	if a.glanceAt(w, time.Second+lookEvery-1) {
		t.Error("samples, and never a look")
	}
	a.judge(w, judge.Observation{Now: 2 * time.Second, Weight: time.Millisecond, Progress: 2, ProgressOK: true})
	if w.turnedAt != time.Second {
		t.Error("a word that stood still was taken for a turn")
	}
}
