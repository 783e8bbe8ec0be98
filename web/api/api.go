// Package api holds the words of the agent's HTTP API: what it sends and
// takes, as JSON. It is data only, shared by the agent, the commands and
// outside tools written in Go.
package api

import "time"

// Status is the answer of GET /api/status.
type Status struct {
	Version        string           `json:"version"`
	Node           string           `json:"node"`
	Mode           string           `json:"mode"` // observe or enforce
	Started        time.Time        `json:"started"`
	UptimeSeconds  float64          `json:"uptime_seconds"`
	CPUSeconds     float64          `json:"cpu_seconds"`    // of the agent
	ResidentBytes  int64            `json:"resident_bytes"` // of the agent
	Samples        uint64           `json:"samples"`
	Lost           map[string]int64 `json:"lost_samples"`     // by reason
	Sampler        string           `json:"sampler"`          // "ok", or why the agent is blind
	SelfTest       string           `json:"self_test"`        // what unwinding a known child on this kernel showed
	SelfTestFailed bool             `json:"self_test_failed"` // it ran, and found problems
	Incidents      int              `json:"incidents"`        // kept on disk
	Proxies        []Proxy          `json:"proxies"`
}

// Proxy is one running instance that is watched.
type Proxy struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"` // nginx, openresty, haproxy
	Master  int    `json:"master_pid"`
	Workers int    `json:"workers"`
	Note    string `json:"note,omitempty"` // what of it cannot be seen, and why
}

// WorkerStatus is one line of GET /api/workers.
type WorkerStatus struct {
	Proxy      string    `json:"proxy"`
	Kind       string    `json:"kind"`
	PID        int       `json:"pid"`
	Index      int       `json:"index"`       // 1-based, kept over respawns
	CPUShare   float64   `json:"cpu_share"`   // of one core over the last second, 0 to 1
	CPUSeconds float64   `json:"cpu_seconds"` // since the worker started
	StallMS    float64   `json:"stall_ms"`    // since the last progress
	Verdict    string    `json:"verdict"`
	Reason     string    `json:"reason,omitempty"`
	Request    string    `json:"request,omitempty"`
	Upstream   string    `json:"upstream,omitempty"`
	Version    string    `json:"version,omitempty"`
	Incident   string    `json:"incident,omitempty"` // id of its open incident
	Started    time.Time `json:"started"`
	AgeSeconds float64   `json:"age_seconds"`
	Young      bool      `json:"young"` // still in its start-up grace
}

// Quarantine is one entry that is in force, or was just made.
type Quarantine struct {
	ID       string    `json:"id"`
	Proxy    string    `json:"proxy"`
	Upstream string    `json:"upstream"`
	Version  string    `json:"version,omitempty"`
	Peer     string    `json:"peer,omitempty"`
	Route    string    `json:"route,omitempty"`
	Server   string    `json:"server,omitempty"` // of HAProxy; Upstream is its backend
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	By       string    `json:"by"` // "agent" or "operator"
	Reason   string    `json:"reason"`
	Incident string    `json:"incident,omitempty"`
	Origin   string    `json:"origin,omitempty"` // node that made it
	Strikes  int       `json:"strikes"`          // how often this culprit was quarantined
}

// QuarantineRequest is the body of POST /api/quarantines. Exactly one of
// Version, Peer, Route and Server is set.
type QuarantineRequest struct {
	Proxy    string  `json:"proxy"` // may be empty where there is only one
	Upstream string  `json:"upstream"`
	Version  string  `json:"version,omitempty"`
	Peer     string  `json:"peer,omitempty"`
	Route    string  `json:"route,omitempty"`
	Server   string  `json:"server,omitempty"` // of HAProxy; Upstream is its backend
	Seconds  float64 `json:"seconds"`          // 0: the agent's default
	Reason   string  `json:"reason"`           // required
}

// Lift is the body of DELETE /api/quarantines/{id}.
type Lift struct {
	Reason string `json:"reason"` // required
}

// Class is one line of GET /api/classes: CPU time of a class of requests,
// estimated from samples.
type Class struct {
	Proxy      string  `json:"proxy"`
	Upstream   string  `json:"upstream"`
	Route      string  `json:"route"` // method and path; numbers and such are "*"
	Phase      string  `json:"phase,omitempty"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Samples    int     `json:"samples"`
	OverBudget int     `json:"over_budget"` // requests over request_budget
}

// Signals is the answer of GET /api/signals: what the host says.
type Signals struct {
	Recent   []Signal          `json:"recent"`
	Counters map[string]uint64 `json:"counters"` // of the kernel, such as "TcpExt.ListenDrops"
	Restarts map[string]uint64 `json:"restarts"` // new worker processes by proxy
	Workers  []WorkerSignals   `json:"workers"`
	Backends map[string]uint64 `json:"backends"` // restarts of processes on this host that workers connect to, by address
	Connects []PeerConnects    `json:"connects"`
	Counting string            `json:"counting,omitempty"` // why connects are counted now; empty: they are not
}

// Signal is one thing that the host said.
type Signal struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"` // files, listen_queue, syn_backlog, connects, connections, restart
	Proxy string    `json:"proxy,omitempty"`
	Text  string    `json:"text"`
}

// WorkerSignals is what the host says of one worker.
type WorkerSignals struct {
	Proxy             string  `json:"proxy"`
	Index             int     `json:"index"`
	PID               int     `json:"pid"`
	OpenFiles         uint64  `json:"open_files"`
	FilesLimit        uint64  `json:"files_limit"`
	ExhaustionSeconds float64 `json:"exhaustion_seconds"` // until the limit is reached; 0: not foreseeable
	QueueShare        float64 `json:"queue_share"`        // of its fullest listen queue; 0: under a quarter
}

// Event is one line of the feed, GET /events.
type Event struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"` // suspected, confirmed, captured, quarantined, evicted, recovered, refused, lifted, note
	Proxy    string    `json:"proxy,omitempty"`
	Worker   int       `json:"worker,omitempty"`
	Incident string    `json:"incident,omitempty"`
	Text     string    `json:"text"`
}

// Error is the body of every answer that is not a success.
type Error struct {
	Error string `json:"error"`
}
