package drill

import (
	"fmt"
	"strings"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
)

// rail is what a scenario expects that makes the agent stop half way.
type rail struct {
	evicted int    // so many workers, and no more
	refusal string // part of the agent's own word for why it stopped
}

// railFrom is what all rails have in common: the poisoned update, and a few
// seconds in which nothing more may happen once the agent has refused.
func railFrom(sc *Scenario, evicted int, refusal string) {
	poison(sc)
	sc.after = 3 * time.Second
	sc.rail = &rail{evicted: evicted, refusal: refusal}
}

func railBucket(sc *Scenario) {
	railFrom(sc, 1, "the bucket of 1 evictions is empty")
	sc.agent = func(c *config.Config) { c.Rails.Evictions, c.Rails.EvictionRefill = 1, time.Hour }
}

func railNoRespawn(sc *Scenario) {
	railFrom(sc, 1, "no serving successor")
	sc.Case.TriggerCommand = "kill -STOP $MASTER"
}

// railStuckAgain takes a proxy that knows nothing of the library, and gives
// the agent no way to tell its balancer.
func railStuckAgain(sc *Scenario) {
	railFrom(sc, 1, "a successor got stuck on the same culprit")
	sc.leaf, sc.values, sc.change, sc.rate, sc.backends = "", "", "", 20, false
	sc.Case.Quarantine = nil
}

// railLift has an operator lift the quarantine between two evictions. The
// bucket holds the second one back, so that there is time for that.
func railLift(sc *Scenario) {
	railBucket(sc)
	sc.lift, sc.rail.refusal = true, "an operator lifted the quarantine during the response"
}

func railPanic(sc *Scenario) {
	railFrom(sc, 1, "panic threshold")
	sc.leaf, sc.values = "", ""
}

// refused says whether the agent has stopped for the expected reason.
func (r *rail) refused(list []*seen) bool {
	for _, s := range list {
		for _, a := range s.Actions {
			if a.Result == "refused" && strings.Contains(a.Text, r.refusal) {
				return true
			}
		}
	}
	return false
}

// judgeRail is for scenarios in which the agent must stop half way.
func (t *trial) judgeRail() {
	r := t.sc.rail
	if !r.refused(t.rec.after()) {
		t.fail("the agent did not refuse with %q; it said: %s", r.refusal, refusals(t.rec.after()))
	}
	if got := t.res.WorkersEvicted; got != r.evicted {
		t.fail("%d workers evicted, expected %d and no more", got, r.evicted)
	}
	if n := lost(t.rec.changes); n != r.evicted {
		t.fail("%d workers ended, expected %d", n, r.evicted)
	}
}

// lost counts the workers that ended.
func lost(changes []change) int {
	n := 0
	for _, c := range changes {
		if c.gone {
			n++
		}
	}
	return n
}

func refusals(list []*seen) string {
	var out []string
	for _, s := range list {
		for _, a := range s.Actions {
			if a.Result != "done" {
				out = append(out, fmt.Sprintf("%s of %s %s: %s", a.Kind, a.Target, a.Result, a.Text))
			}
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "; ")
}
