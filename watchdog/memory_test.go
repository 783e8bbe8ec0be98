package watchdog

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/watchdog/config"
)

// TestProxiesThatEndLeaveNothing has one agent see one nginx after the other,
// each at work. While they run no worker may hold memory of its last sample;
// once they are gone, nothing of them may be left.
func TestProxiesThatEndLeaveNothing(t *testing.T) {
	const nobody = 1 << 30
	a, _ := startAgent(t, t.TempDir(), config.Observe, nil)
	watch := func(t *testing.T, master int) {
		cfg := *a.settings.Load()
		cfg.Masters = []int{master}
		if err := a.Reload(cfg); err != nil {
			t.Fatal(err)
		}
	}
	watch(t, nobody)
	for n := range 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			base, master := startNginx(t, busyNginx, "/burn/0")
			watch(t, master)
			// What ends before its sample is read has left its memory: on a fast
			// machine a request must take longer to be seen.
			loops := 1_000_000
			waitFor(t, "its worker is seen at work", func() bool {
				loops += loops / 4
				if r, err := http.Get(fmt.Sprintf("%s/burn/%d", base, loops)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
				}
				return a.atWork(t)
			})
		})
		watch(t, nobody)
	}
	waitFor(t, "workers and proxies are forgotten", func() (gone bool) {
		_ = a.ask(func() error { gone = len(a.workers) == 0 && len(a.instances) == 0; return nil })
		return gone
	})
	waitFor(t, "so are their images", func() bool {
		a.images.Expire(0)
		runtime.GC()
		return a.images.Len() == 0
	})
}

// atWork says that workers were sampled, and wants none to hold memory of that.
func (a *Agent) atWork(t *testing.T) (seen bool) {
	t.Helper()
	_ = a.ask(func() error {
		for _, w := range a.workers {
			seen = seen || w.hasReq && len(w.recent) > 0
			if n := w.process.Held(); n > 0 {
				t.Errorf("worker %d: %d pages and windows of its last sample are held", w.PID, n)
			}
		}
		return nil
	})
	return seen
}

// A worker that hardly ever runs must not keep its samples for hours.
func TestOldSamplesAreForgotten(t *testing.T) {
	for _, x := range []struct {
		name      string
		suspected time.Duration
		at        time.Duration
		want      int
	}{
		{"all are young", 0, 20 * time.Second, 3},
		{"one is old", 0, 35 * time.Second, 2},
		{"all are old", 0, time.Minute, 0},
		{"of a suspect", time.Second, time.Hour, 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := sleeper(t)
			clocks := hands{mono: x.at}
			a := &Agent{clock: clocks.clock(), images: symbol.NewCache(1), workers: map[int]*worker{w.TID: w}}
			w.suspectedAt = x.suspected
			for _, when := range []time.Duration{2, 10, 20} {
				w.keep(sampled{when: when * time.Second})
			}
			a.meet(w.in, w.Worker)
			if len(w.recent) != x.want || x.want == 0 && w.recent != nil {
				t.Errorf("%d samples are kept, want %d", len(w.recent), x.want)
			}
		})
	}
}
