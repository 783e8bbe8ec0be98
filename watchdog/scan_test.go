package watchdog

import (
	"testing"

	"github.com/spinguard/spinguard/proxy"
)

func TestWantedMastersAndTheirUpgrades(t *testing.T) {
	type look struct {
		master, starter int
		want            bool
	}
	for _, row := range []struct {
		name    string
		masters []int
		looks   []look
	}{
		{"none named, all wanted", nil, []look{{10, 1, true}, {20, 10, true}}},
		{"only the named one", []int{10}, []look{{10, 9, true}, {11, 9, false}, {12, 0, false}}},
		{"an upgrade, and its own upgrade", []int{10}, []look{{20, 10, true}, {30, 20, true}, {40, 39, false}}},
		{"an upgrade whose starter is met no more", []int{10}, []look{{20, 10, true}, {20, 1, true}}},
		{"an upgrade of one that is not wanted", []int{10}, []look{{20, 11, false}, {30, 20, false}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := &Agent{}
			a.cfg.Masters = row.masters
			for _, l := range row.looks {
				if got := a.wanted(proxy.Proxy{Master: l.master, Starter: l.starter}); got != l.want {
					t.Errorf("master %d, started by %d: wanted %v, want %v", l.master, l.starter, got, l.want)
				}
			}
		})
	}
}
