package drill

import (
	"time"

	"github.com/spinguard/spinguard/web/api"
)

// record is everything that was seen of one run. The judge looks at nothing
// else, so that it can be tested without a proxy.
type record struct {
	trigger   time.Time
	incidents []*seen
	broken    map[string]string             // incident id -> why its incident.json cannot be read
	shares    map[string]map[string]float64 // incident folder -> frame -> share of its samples
	stalls    []stall
	live      liveLog
	changes   []change // of the workers, from the trigger on
	shots     []shot
	hook      string // content of the quarantine file of the case
	usage     Usage
	stuck     []string    // workers left stuck at the end, by the drill's own look
	healthy   bool        // the healthy request is answered at the end
	healed    bool        // so is the one that only works when all is healed
	night     *nightFacts // nil without one
	problems  []string    // what went wrong with the drill itself
}

// after returns the incidents that began after the trigger.
func (r *record) after() []*seen {
	var out []*seen
	for _, s := range r.incidents {
		if !s.Began.Before(r.trigger) {
			out = append(out, s)
		}
	}
	return out
}

// allEnded returns when the last incident ended, once all have.
func (r *record) allEnded() (at time.Time, ok bool) {
	for _, s := range r.after() {
		if s.Ended == nil {
			return time.Time{}, false
		}
		if s.Ended.After(at) {
			at = *s.Ended
		}
	}
	return at, !at.IsZero()
}

// firstEviction returns when the first worker was evicted, zero if none was or
// nobody lived to tell.
func (r *record) firstEviction() time.Time {
	var first *int64
	for _, s := range r.after() {
		first = earlier(first, s.after(r.trigger, s.Timeline.Evicted))
	}
	if first == nil {
		return time.Time{}
	}
	return r.trigger.Add(time.Duration(*first) * time.Millisecond)
}

// earlier returns the smaller of two times that may be missing.
func earlier(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// stall is one line of the agent's stall log: a standstill that ended by
// itself before it became an incident.
type stall struct {
	PID     int       `json:"pid"`
	At      time.Time `json:"at"`
	MS      int64     `json:"ms"`
	Request string    `json:"request"`
	Frames  []string  `json:"frames"`
}

// liveLog says which verdicts the agent gave while the drill ran.
type liveLog struct {
	polls int
	first map[string]time.Time // verdict -> when it was first seen after the trigger
}

func (g *liveLog) add(at time.Time, list []api.WorkerStatus) {
	g.polls++
	if g.first == nil {
		g.first = map[string]time.Time{}
	}
	for _, w := range list {
		if _, known := g.first[w.Verdict]; !known && w.Verdict != "" {
			g.first[w.Verdict] = at
		}
	}
}

// worst returns the worst verdict that was seen, leaving out suspicions.
func (g *liveLog) worst() string {
	worst := ""
	for v := range g.first {
		if v != "suspect" && (worst == "" || severity[v] > severity[worst]) {
			worst = v
		}
	}
	return worst
}
