package watchdog

import (
	"testing"

	"github.com/spinguard/spinguard/watchdog/judge"
)

// Many workers that rest are looked at in turns, as often as each other.
func TestManyWorkersThatRestAreLookedAtInTurns(t *testing.T) {
	for workers, most := range map[int]int{1: 1, 8: 1, 32: 1, 33: 2, 64: 2, 65: 3, 1000: 3} {
		for tid := 4000; tid < 4007; tid++ {
			since, seen := 0, 0
			for look := uint64(1); look <= 12; look++ {
				since++
				if !isTurn(look, tid, workers) {
					continue
				}
				if seen++; seen > 1 && since != most {
					t.Errorf("%d workers: looked at after %d looks, want %d", workers, since, most)
				}
				since = 0
			}
			if want := 12 / most; seen != want {
				t.Errorf("%d workers: %d of 12 looks, want %d", workers, seen, want)
			}
		}
	}
}

func TestWhoRests(t *testing.T) {
	rests := func(change func(*worker)) bool {
		w := &worker{}
		w.look.InEventWait, w.decision.Verdict = true, judge.Healthy
		change(w)
		return w.rests()
	}
	if !rests(func(*worker) {}) {
		t.Error("a worker in its event wait does not rest")
	}
	for name, change := range map[string]func(*worker){
		"asleep elsewhere": func(w *worker) { w.look.InEventWait = false },
		"suspected":        func(w *worker) { w.decision.Verdict = judge.Suspect },
		"watched closely":  func(w *worker) { w.level = closer },
	} {
		if rests(change) {
			t.Errorf("one that is %s rests", name)
		}
	}
}
