package watchdog

import (
	"testing"
	"time"

	"github.com/spinguard/spinguard/proxy"
)

func TestSuccessorsOfEvictedWorkers(t *testing.T) {
	out := time.Unix(1000, 0)
	e := &episode{firstOut: out, members: []*member{{pid: 70, index: 0, start: 500}, {pid: 71, index: 1, start: 500}}}
	at := func(s int, pid, index int, start uint64) *worker {
		w := &worker{since: out.Add(time.Duration(s) * time.Second)}
		w.Worker = proxy.Worker{PID: pid, Index: index, StartTime: start}
		return w
	}
	told := at(-3, 91, 0, 700)
	told.Exiting = true
	for _, row := range []struct {
		name string
		w    *worker
		want bool
	}{
		{"born after the eviction", at(1, 80, 0, 900), true},
		{"born after the eviction, in nobody's place", at(1, 80, 5, 900), true},
		{"a member", at(-9, 71, 1, 500), false},
		{"a sibling of the same age", at(-9, 72, 2, 500), false},
		{"a reload put it into a member's place before", at(-3, 90, 0, 700), true},
		{"the same, but told to end by now", told, false},
		{"of the newer workers one in another place", at(-3, 92, 2, 700), false},
		{"an older worker with a member's number", at(-9, 60, 1, 300), false},
	} {
		if got := row.w.follows(e); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
