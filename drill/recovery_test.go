package drill

import (
	"testing"
	"time"
)

var zero = time.Date(2026, 7, 13, 22, 52, 0, 0, time.UTC)

func ms(n int) time.Time { return zero.Add(time.Duration(n) * time.Millisecond) }

// shotsEvery returns probes sent every 10 ms from a to b, each answered after
// 5 ms or given up after 100.
func shotsEvery(a, b int, ok bool) []shot {
	var out []shot
	for t := a; t < b; t += 10 {
		s := shot{sent: ms(t), ended: ms(t + 5), ok: ok}
		if !ok {
			s.ended = ms(t + 100)
		}
		out = append(out, s)
	}
	return out
}

func TestRecoveredAt(t *testing.T) {
	join := func(parts ...[]shot) (all []shot) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		shots []shot
		from  int
		want  int // -1: not recovered
	}{
		{"outage and back", join(shotsEvery(0, 100, true), shotsEvery(100, 900, false), shotsEvery(900, 2000, true)), 850, 905},
		{"not before the workers are back", join(shotsEvery(0, 2000, true)), 700, 705},
		{"a relapse within half a second", join(shotsEvery(0, 400, true), shotsEvery(400, 410, false), shotsEvery(410, 2000, true)), 0, 415},
		{"a relapse later does not undo it", join(shotsEvery(0, 800, true), shotsEvery(800, 900, false), shotsEvery(900, 2000, true)), 0, 5},
		{"too short", shotsEvery(0, 400, true), 0, -1},
		{"never", shotsEvery(0, 2000, false), 0, -1},
		{"one that waits says nothing yet", join(shotsEvery(0, 100, true), []shot{{sent: ms(100)}}, shotsEvery(110, 2000, true)), 0, -1},
		{"none", nil, 0, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, ok := recoveredAt(tt.shots, ms(tt.from))
			if want := tt.want >= 0; ok != want {
				t.Fatalf("recovered is %v, want %v", ok, want)
			}
			if ok && !at.Equal(ms(tt.want)) {
				t.Errorf("recovered at %v, want %v", at.Sub(zero), ms(tt.want).Sub(zero))
			}
		})
	}
}

func TestCount(t *testing.T) {
	shots := append(shotsEvery(0, 100, true), shotsEvery(100, 200, false)...)
	shots = append(shots, shotsEvery(200, 300, true)...)
	shots = append(shots, shot{sent: ms(300), ended: ms(400)}, shot{sent: ms(310)})
	got := count(shots, ms(205))
	if want := (Probe{Sent: 31, OK: 20, Failed: 11, FailedAfterRecovery: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := count(shots, time.Time{}); got.FailedAfterRecovery != 0 {
		t.Errorf("without a recovery nothing failed after it: %+v", got)
	}
}

func TestReplaced(t *testing.T) {
	gone := func(at, pid, left int) change { return change{at: ms(at), pid: pid, gone: true, current: left} }
	back := func(at, pid, now int) change { return change{at: ms(at), pid: pid, current: now} }
	for _, tt := range []struct {
		name    string
		changes []change
		n       int
		want    int // -1: not yet
		evicted int
	}{
		{"one of one", []change{gone(10, 1, 1), back(30, 3, 2)}, 1, 30, 0},
		{"within one look", []change{gone(10, 1, 2), back(10, 3, 2)}, 1, 10, 0},
		{"the second is still missing", []change{gone(10, 1, 1), back(30, 3, 2)}, 2, -1, 0},
		{"second gone, not back", []change{gone(10, 1, 1), back(30, 3, 2), gone(40, 2, 1)}, 2, -1, 0},
		{"both back", []change{gone(10, 1, 1), back(30, 3, 2), gone(40, 2, 1), back(70, 4, 2)}, 2, 70, 0},
		{"nothing", nil, 1, -1, 0},
		{"a reload before the eviction", []change{back(5, 8, 4), gone(10, 1, 3), gone(40, 2, 2)}, 1, 40, 30},
		{"only a reload", []change{back(5, 8, 4), gone(10, 1, 3)}, 1, -1, 30},
		{"reloads go on after it", []change{gone(40, 2, 2), back(60, 9, 4), gone(70, 3, 2)}, 1, 40, 30},
	} {
		at, ok := replaced(tt.changes, ms(tt.evicted), tt.n, 2)
		if want := tt.want >= 0; ok != want || ok && !at.Equal(ms(tt.want)) {
			t.Errorf("%s: %v, %v, want %d", tt.name, at.Sub(zero), ok, tt.want)
		}
	}
}
