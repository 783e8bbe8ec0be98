// Package incident keeps the evidence of stuck workers on disk: one folder per
// incident, written whole or not at all, with a machine-readable
// incident.json, a report that a browser opens without a network, and the
// profiles. It also bounds how much of the disk the incidents may take.
package incident

import (
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// Incident is everything that is known about one incident, from the first
// suspicion to recovery. It is plain data: copy it freely, but do not change it
// while another goroutine writes it to a Store.
type Incident struct {
	ID     string `json:"id"`     // see NewID
	Origin string `json:"origin"` // name of the node
	Proxy  string `json:"proxy"`  // name of the proxy, such as "nginx-main"
	Kind   string `json:"kind"`   // "nginx", "openresty", "haproxy"
	Worker Worker `json:"worker"` // the worker that was seen first
	Mode   string `json:"mode"`   // "observe" or "enforce"

	Verdict string  `json:"verdict"` // the judge's, such as "runaway"
	Reason  string  `json:"reason"`  // the judge's, one clause with its numbers
	Outcome Outcome `json:"outcome"` // how it ended; empty while open
	Story   string  `json:"story"`   // one sentence; the Store fills it in

	Began    time.Time  `json:"began"` // first suspicion
	Ended    *time.Time `json:"ended"` // nil while the incident is open
	Timeline Timeline   `json:"timeline"`
	Events   []Event    `json:"events"`

	Evidence Evidence `json:"evidence"`
	Change   *Change  `json:"change,omitempty"`  // what the configuration version changed
	Blocked  *Blocked `json:"blocked,omitempty"` // what a worker off the CPU waits for
	Lock     *Lock    `json:"lock,omitempty"`    // who holds the lock that is waited for
	Numbers  Numbers  `json:"numbers"`

	Actions []Action `json:"actions"` // what was done or refused, in order
	Rails   []string `json:"rails"`   // the state of the rails, one sentence each

	WorkersStuck   int `json:"workers_stuck"`
	WorkersEvicted int `json:"workers_evicted"`

	Signals []Signal `json:"signals,omitempty"` // what the host said shortly before it and since
	Samples Samples  `json:"samples"`
	Log     []string `json:"log"`               // the proxy's own log lines around the incident
	Follows string   `json:"follows,omitempty"` // id of the incident whose successor this one hit
}

// Open says whether the incident has not ended yet.
func (inc *Incident) Open() bool { return inc.Ended == nil }

// Outcome says how an incident ended.
type Outcome string

// The outcomes. An open incident has the empty one.
const (
	Recovered  Outcome = "recovered"   // the agent acted and the proxy serves again
	EndedAlone Outcome = "ended_alone" // the stall ended by itself
	Observed   Outcome = "observed"    // mode observe: the agent stopped watching it without acting
	Refused    Outcome = "refused"     // a rail forbade the action
	StuckAgain Outcome = "stuck_again" // the successor got stuck on the same culprit
	Failed     Outcome = "failed"      // the agent acted, but the proxy does not serve
	Gone       Outcome = "gone"        // the worker ended for another reason
)

// Worker names one worker of a proxy.
type Worker struct {
	Index int       `json:"index"` // 1-based position in the proxy, kept over respawns; 0: unknown
	PID   int       `json:"pid"`
	Since time.Time `json:"since,omitzero"` // when the process started
}

// Event is one line of what happened, in the order of time.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // suspected, confirmed, captured, quarantined, evicted, recovered, refused, note
	Text string    `json:"text"`
}

// Signal is one thing that the host said: files that run out, a full listen
// queue, failing connects, connections that pile up, restarts.
type Signal struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`
}

// Action is one thing that the agent did or declined to do.
type Action struct {
	AtMS   int64  `json:"at_ms"`  // milliseconds after Began
	Kind   string `json:"kind"`   // quarantine, evict, hook, verify, alert
	Target string `json:"target"` // "shop version 2", "worker 2 (pid 4711)"
	Result string `json:"result"` // done, refused, failed, would (mode observe)
	Text   string `json:"text"`   // why; which rail
}

// Evidence says what the stuck worker was doing.
type Evidence struct {
	Request  string        `json:"request"`            // "GET /shop/cart/17"; query strings masked
	Host     string        `json:"host,omitempty"`     // the Host of the request
	Phase    string        `json:"phase,omitempty"`    // "pick" while a picker chooses a peer, else free words such as "access"
	Upstream string        `json:"upstream,omitempty"` // from the crumb or the culprit's locals
	Version  string        `json:"version,omitempty"`  // the version of the upstream's configuration
	Digest   string        `json:"digest,omitempty"`   // of that version, the same on every node
	Peer     string        `json:"peer,omitempty"`     // "127.0.0.1:8080"
	Frames   []string      `json:"frames"`             // leaf first: "gcd (wrr.lua:12)"
	Stack    []Frame       `json:"stack"`              // the same stack in full
	Hot      int           `json:"hot"`                // index in Stack of the frame to blame
	Lines    []Line        `json:"lines,omitempty"`    // of the hot frame over all samples, most often first
	Values   []stack.Value `json:"values"`             // of the hot frame
}

// Line is one line that the hot function was seen at.
type Line struct {
	Place string  `json:"place"` // "wrr.lua:12"
	Share float64 `json:"share"` // of the samples in that function
}

// Change is the difference between a version of an upstream and the one before.
type Change struct {
	Upstream string `json:"upstream"`
	From     string `json:"from"` // version; empty if there was none
	To       string `json:"to"`
	Text     string `json:"text"` // unified: lines begin with "+", "-" or " "
	Config   string `json:"config,omitempty"`
}

// Blocked says what a worker that is off the CPU outside its event wait does.
type Blocked struct {
	Syscall string `json:"syscall"`          // "wait4(-1, ...)", decoded as far as known
	Target  string `json:"target,omitempty"` // file or peer waited for
	State   string `json:"state,omitempty"`  // S or D, from the process status
}

// Lock says who holds the lock that workers wait for.
type Lock struct {
	Zone    string   `json:"zone"` // name of the shared memory zone, or its address
	Holder  Worker   `json:"holder"`
	Verdict string   `json:"holder_verdict"`
	Victims []Worker `json:"victims"`
}
