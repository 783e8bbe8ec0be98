package watchdog

import (
	"testing"
	"time"

	"github.com/spinguard/spinguard/watchdog/judge"
)

func TestUsualKnowsStandstillsThatEnded(t *testing.T) {
	const ms = time.Millisecond
	var u usual
	see := func(before judge.Verdict, ended, now time.Duration) {
		u.learn(judge.Decision{Before: before, Ended: ended}, now)
	}
	expect := func(want, now time.Duration) {
		t.Helper()
		if got := u.length(now); got != want {
			t.Errorf("%v is usual after %v, want %v", got, now, want)
		}
	}
	expect(0, 0)
	see(judge.Blocked, 900*ms, time.Second)
	see(judge.LockVictim, 900*ms, time.Second)
	see(judge.Healthy, 900*ms, time.Second)
	expect(0, time.Second)
	see(judge.Suspect, 310*ms, time.Minute)
	see(judge.Suspect, 150*ms, 2*time.Minute)
	expect(310*ms, 11*time.Minute)
	expect(0, 11*time.Minute+ms)
	see(judge.Runaway, 340*ms, 12*time.Minute)
	expect(340*ms, 12*time.Minute)
	see(judge.Suspect, 120*ms, 30*time.Minute)
	expect(120*ms, 30*time.Minute)
}
