package watchdog

import (
	"slices"
	"testing"

	"github.com/spinguard/spinguard/watchdog/config"
)

func TestWhatNeedsARestartKeepsItsValue(t *testing.T) {
	now, next := config.Default(), config.Default()
	now.Node = "lb1"
	next.Mode, next.Sampling.Rate, next.StateDir, next.EvictSpinning = config.Enforce, 99, "/elsewhere", true
	kept := fixed(&next, now)
	slices.Sort(kept)
	if !slices.Equal(kept, []string{"sampling.rate", "state_dir"}) {
		t.Errorf("kept %q", kept)
	}
	if next.Sampling.Rate != 49 || next.StateDir != now.StateDir || next.Node != "lb1" || next.Mode != config.Enforce || !next.EvictSpinning {
		t.Errorf("in force %+v", next)
	}
}
