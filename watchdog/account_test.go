package watchdog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
)

// What was taken is what is shown and what was lost, for each reason, in the
// profile as in incident.json.
func TestAccountAddsUp(t *testing.T) {
	w := &witness{tid: 4711, verdict: "runaway", dropped: 7, blind: 3, losses: losses{ring: 11, unreadable: 2}}
	for range 5 {
		w.recent = append(w.recent, sampled{weight: time.Millisecond, result: profiler.Result{Stack: stack.Stack{
			Frames: []stack.Frame{{Function: "f"}, {Function: "nginx+0x10"}}, Truncated: "frame 2: no rule",
		}}})
	}
	b := profiler.NewBuilder(time.Unix(1000, 0), time.Millisecond)
	w.fill(b)
	w.losses.countUnreadable(b)
	got := account(b, 499)
	if got.Taken != got.Shown+got.LostAll() || got.Taken != 28 || got.Shown != 5 || got.Truncated != 5 || got.Unnamed == 0 {
		t.Errorf("%+v", got)
	}
	want := map[string]int64{"not_kept": 7, "stack_not_copied": 3, "ring_full": 11, "unreadable_record": 2}
	p, err := b.Profile()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.Comments, "lost_ring_full_of_4711=11") {
		t.Errorf("comments do not say whose samples found the ring full: %q", p.Comments)
	}
	for reason, n := range want {
		if got.Lost[reason] != n || !slices.Contains(p.Comments, fmt.Sprintf("lost_%s=%d", reason, n)) {
			t.Errorf("%s: %d in the account, want %d; comments %q", reason, got.Lost[reason], n, p.Comments)
		}
	}
}
