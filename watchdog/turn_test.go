package watchdog

import (
	"testing"
	"time"

	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

func TestOnlyAMonotonicWordTellsWhenItsTurnBegan(t *testing.T) {
	const now = 1000 * time.Second
	for _, c := range []struct {
		name string
		kind proxy.Kind
		word uint64
		want time.Duration
	}{
		{"nginx", proxy.Nginx, 999_900, now - 99*time.Millisecond + coarse},
		{"just begun", proxy.Nginx, 1_000_000, 0},
		{"nginx before 1.13.10", proxy.Nginx, 1_796_000_000_000, 0},
		{"older than any turn", proxy.Nginx, 5, 0},
		{"a counter of loops", proxy.HAProxy, 999_900, 0},
	} {
		w := &worker{Worker: proxy.Worker{Kind: c.kind}}
		if got := w.turnFrom(&judge.Observation{Now: now, Progress: c.word, ProgressOK: true}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
