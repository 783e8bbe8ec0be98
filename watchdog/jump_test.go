package watchdog

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/web"
)

// hands are the clocks of a host, moved by the test.
type hands struct {
	wall time.Time
	mono time.Duration
}

func (h *hands) clock() clock {
	mono := func() time.Duration { return h.mono }
	return clock{wall: func() time.Time { return h.wall }, mono: mono, boot: mono}
}

// pass lets time go by on all clocks.
func (h *hands) pass(d time.Duration) { h.wall, h.mono = h.wall.Add(d), h.mono+d }

func TestAClockThatWasSetIsNoticedOnce(t *testing.T) {
	h := &hands{wall: time.UnixMilli(1796000000000), mono: time.Hour}
	var j jumps
	for _, set := range []time.Duration{0, 400 * time.Millisecond, -time.Hour, 0, 24 * time.Hour, 0} {
		h.pass(50 * time.Millisecond)
		h.wall = h.wall.Add(set)
		want := set
		if set.Abs() < jumpMin {
			want = 0
		}
		if got := j.step(h.clock()); got != want {
			t.Errorf("set by %s: noticed %s", set, got)
		}
	}
	// An agent that had to wait between the two clocks takes that for none.
	late := h.clock()
	late.boot = func() time.Duration { h.mono += 5 * time.Second; return h.mono }
	if got := j.step(late); got != 0 {
		t.Errorf("a late reading was taken for %s", got)
	}
}

// An incident and the quarantines during a jump: the incident is as long as it
// was, in its file too, and says so; each quarantine lasts its length.
func TestClockSetDuringAnIncident(t *testing.T) {
	for _, d := range []time.Duration{-6 * time.Hour, 6 * time.Hour} {
		h := &hands{wall: time.UnixMilli(1796000000000), mono: time.Hour}
		ledger, err := balancer.OpenLedger(filepath.Join(t.TempDir(), "ledger"))
		if err != nil {
			t.Fatal(err)
		}
		in := &instance{Proxy: proxy.Proxy{Name: "n", Master: 1}, ledger: ledger, upstreams: map[string]bool{}}
		defer in.close()
		a := &Agent{clock: h.clock(), log: zap.NewNop(), feed: &web.Feed{}, instances: map[string]*instance{"n": in}}
		a.cfg.StateDir = t.TempDir()
		a.clockSet()
		began := h.wall
		e := &episode{in: in, from: h.mono, inc: incident.Incident{ID: incident.NewID(began, nil), Began: began}}
		a.episodes = []*episode{e}
		hold := &serverHold{ID: "h", Since: began, Until: began.Add(30 * time.Second)}
		a.holds = []*serverHold{hold}
		if _, err := ledger.Add(balancer.Entry{Kind: balancer.KindVersion, Upstream: "u", Version: 2, Until: began.Add(30 * time.Second)}, began); err != nil {
			t.Fatal(err)
		}
		h.pass(time.Second)
		h.wall = h.wall.Add(d)
		a.clockSet()
		h.pass(time.Second)
		a.clockSet()
		a.end(e, incident.EndedAlone, "test")

		if got := e.inc.Ended.Sub(began); got != 2*time.Second {
			t.Errorf("set by %s: the incident took %s, want 2 s", d, got)
		}
		told := 0
		for i, ev := range e.inc.Events {
			if strings.Contains(ev.Text, "clock of this host was set by "+d.String()) {
				told++
			}
			if i > 0 && ev.At.Before(e.inc.Events[i-1].At) {
				t.Errorf("set by %s: event %d comes before the one before it", d, i)
			}
		}
		if told != 1 {
			t.Errorf("set by %s: told %d times in the incident, want once: %+v", d, told, e.inc.Events)
		}
		if left := hold.Until.Sub(h.wall); left != 28*time.Second {
			t.Errorf("set by %s: the server is held for %s more, want 28 s", d, left)
		}
		entries, err := ledger.List(h.wall)
		if err != nil || len(entries) != 1 || entries[0].Until.Sub(h.wall) != 28*time.Second {
			t.Errorf("set by %s: %v, %v; want one quarantine for 28 s more", d, entries, err)
		}
	}
}
