package notify

import (
	"time"

	"github.com/spinguard/spinguard/incident"
)

// Kind says what happened to an incident.
type Kind string

// The kinds.
const (
	Opened  Kind = "opened"  // its evidence is there
	Refused Kind = "refused" // a rail forbade an action: a person has to decide
	Ended   Kind = "ended"
)

// Event is what a webhook gets, as JSON.
type Event struct {
	Key            string           `json:"key"` // the same each time that this event is sent
	Kind           Kind             `json:"event"`
	At             time.Time        `json:"at"`
	Link           string           `json:"link"` // the incident's page
	Incident       string           `json:"incident"`
	Node           string           `json:"node"`
	Proxy          string           `json:"proxy"`
	ProxyKind      string           `json:"kind"`
	Mode           string           `json:"mode"`
	Verdict        string           `json:"verdict"`
	Reason         string           `json:"reason"`
	Outcome        incident.Outcome `json:"outcome"`
	Story          string           `json:"story"`
	Request        string           `json:"request"`
	Upstream       string           `json:"upstream"`
	Version        string           `json:"version"`
	Began          time.Time        `json:"began"`
	Ended          *time.Time       `json:"ended"`
	WorkersStuck   int              `json:"workers_stuck"`
	WorkersEvicted int              `json:"workers_evicted"`
	WasRefused     bool             `json:"was_refused"` // some action was, by now
}

// newEvent copies what is told of an incident. Texts come from the memory of a
// proxy and are bounded.
func newEvent(kind Kind, inc *incident.Incident, at time.Time, page string) Event {
	e := Event{
		Key: inc.ID + "-" + string(kind), Kind: kind, At: at, Link: page + "/incidents/" + inc.ID, Incident: inc.ID, Node: inc.Origin,
		Proxy: short(inc.Proxy), ProxyKind: inc.Kind, Mode: inc.Mode, Verdict: inc.Verdict, Reason: short(inc.Reason), Outcome: inc.Outcome,
		Story: short(incident.Story(inc)), Request: short(inc.Evidence.Request), Upstream: short(inc.Evidence.Upstream),
		Version: short(inc.Evidence.Version), Began: inc.Began, WorkersStuck: inc.WorkersStuck, WorkersEvicted: inc.WorkersEvicted,
	}
	if inc.Ended != nil {
		ended := *inc.Ended
		e.Ended = &ended
	}
	return e
}

// short bounds a text, in characters.
func short(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:min(most, len(r))])
}
