// Package respond decides what may be done about stuck workers, and in which
// order: evidence, quarantine, evict, verify. Like the judge it is pure: time
// and facts come in, actions go out, the agent carries them out.
package respond

import (
	"fmt"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
)

// Culprit names what made workers stuck. The zero value is an unknown one.
type Culprit struct {
	Proxy    string
	Upstream string
	Version  string
	Server   string // of HAProxy, instead of a version
	Route    string // instead of a version; its upstream may be unknown
}

// Known says that the culprit of an incident can be quarantined.
func (c Culprit) Known() bool { return c.Upstream != "" && (c.Version != "" || c.Server != "") }

func (c Culprit) String() string {
	if c.Route != "" {
		return "route " + c.Route
	}
	if c.Server != "" {
		return fmt.Sprintf("server %s of backend %s", c.Server, c.Upstream)
	}
	return fmt.Sprintf("version %s of upstream %s", c.Version, c.Upstream)
}

// Rails bound what the agent does over all incidents. One goroutine uses them.
type Rails struct {
	limits config.Rails
	tokens float64
	filled time.Time
	ladder map[Culprit]rung
	// Jitter returns a number in [0, 1): it keeps the quarantines of a fleet
	// from ending together.
	jitter func() float64
}

// rung is how often a culprit was quarantined before, and until when.
type rung struct {
	times int
	until time.Time
}

// A culprit that stayed away for this long after its quarantine begins anew.
const forget = time.Hour

// The ladder is bounded: versions are counted up for ever.
const ladderMax = 1024

// NewRails returns rails with a full bucket. jitter returns numbers in [0, 1).
func NewRails(limits config.Rails, now time.Time, jitter func() float64) *Rails {
	return &Rails{limits: limits, tokens: float64(limits.Evictions), filled: now, ladder: map[Culprit]rung{}, jitter: jitter}
}

// Evict takes a token for one eviction. The error says which rail refused.
func (r *Rails) Evict(now time.Time) error {
	r.refill(now)
	if r.tokens < 1 {
		return fmt.Errorf("the bucket of %d evictions is empty, the next one is free in %s", r.limits.Evictions,
			time.Duration((1-r.tokens)*float64(r.limits.EvictionRefill)).Round(time.Second))
	}
	r.tokens--
	return nil
}

func (r *Rails) refill(now time.Time) {
	if r.limits.EvictionRefill > 0 {
		r.tokens += float64(now.Sub(r.filled)) / float64(r.limits.EvictionRefill)
	}
	r.tokens = min(r.tokens, float64(r.limits.Evictions))
	r.filled = now
}

// Quarantine returns until when the culprit is to be refused. upstreams is how
// many the proxy is known to have, refused how many of them have a quarantine
// in force. The error says which rail forbade it.
func (r *Rails) Quarantine(now time.Time, c Culprit, upstreams, refused int) (time.Time, error) {
	return r.lease(now, c, r.limits.QuarantineBase, "upstreams", upstreams, refused)
}

// QuarantineRoute is Quarantine for a route, with a length of its own. routes
// is how many the proxy is known to have.
func (r *Rails) QuarantineRoute(now time.Time, c Culprit, length time.Duration, routes, refused int) (time.Time, error) {
	return r.lease(now, c, length, "routes", routes, refused)
}

func (r *Rails) lease(now time.Time, c Culprit, base time.Duration, what string, known, refused int) (time.Time, error) {
	if most := max(1, int(r.limits.PanicShare*float64(known))); refused >= most {
		return time.Time{}, fmt.Errorf("panic threshold: %d of %d known %s are quarantined already, so the cause is not one of them", refused, known, what)
	}
	step := r.ladder[c]
	if now.Sub(step.until) > forget {
		step = rung{}
	}
	length := base << min(step.times, 16)
	length = min(length, r.limits.QuarantineMax)
	length += time.Duration(r.jitter() * 0.1 * float64(length))
	step = rung{times: step.times + 1, until: now.Add(length)}
	r.prune(now)
	r.ladder[c] = step
	return step.until, nil
}

func (r *Rails) prune(now time.Time) {
	for c, step := range r.ladder {
		if now.Sub(step.until) > forget || len(r.ladder) > ladderMax {
			delete(r.ladder, c)
		}
	}
}

// Status describes the rails in sentences, for reports.
func (r *Rails) Status(now time.Time) []string {
	r.refill(now)
	return []string{
		fmt.Sprintf("%d of %d evictions free", int(r.tokens), r.limits.Evictions),
		fmt.Sprintf("%d culprits were quarantined within the last hour", len(r.ladder)),
	}
}
