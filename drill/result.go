package drill

import "github.com/spinguard/spinguard/profiler/stack"

// Result is what a drill found. Its JSON fields are a contract with outside
// tools: fields may be added, but none renamed or removed.
type Result struct {
	Name     string   `json:"name"`
	Passed   bool     `json:"passed"`
	Failures []string `json:"failures"` // plain sentences; empty when passed
	Verdict  string   `json:"verdict"`  // the agent's

	Timeline Timeline `json:"timeline"`
	Evidence Evidence `json:"evidence"`

	WorkersStuck   int   `json:"workers_stuck"`
	WorkersEvicted int   `json:"workers_evicted"`
	Probe          Probe `json:"probe"`
	Agent          Usage `json:"agent"`

	Incident string `json:"incident"` // folder of the main incident, empty without one

	Broken []string `json:"broken,omitempty"` // promises that the twin of a night broke, as it must

	Mode      string   `json:"mode"`
	Kind      string   `json:"kind"`
	Reason    string   `json:"reason"`   // the agent's, for its verdict
	StallMS   int64    `json:"stall_ms"` // longest standstill that the agent reported
	Incidents []string `json:"incidents"`
	Seconds   float64  `json:"seconds"` // wall time of the whole drill
	Out       string   `json:"out"`     // folder with everything that was kept

	log string // of the agent
}

// Timeline holds milliseconds after the trigger, nil where a step did not
// happen.
type Timeline struct {
	Suspected   *int64 `json:"suspected"`
	Confirmed   *int64 `json:"confirmed"`
	Captured    *int64 `json:"captured"`
	Quarantined *int64 `json:"quarantined"`
	Evicted     *int64 `json:"evicted"`
	Recovered   *int64 `json:"recovered"` // as the probes saw it
}

// Evidence is what the agent says of the culprit.
type Evidence struct {
	Request  string        `json:"request"`
	Upstream string        `json:"upstream"`
	Version  string        `json:"version"`
	Peer     string        `json:"peer"`
	Frames   []string      `json:"frames"` // leaf first
	Values   []stack.Value `json:"values"` // arguments and locals of the frame to blame
}

// orEmpty makes lists that are printed as [], not as null.
func (e *Evidence) orEmpty() {
	if e.Frames == nil {
		e.Frames = []string{}
	}
	if e.Values == nil {
		e.Values = []stack.Value{}
	}
}

// Probe counts the requests that the drill itself sent.
type Probe struct {
	Sent                int `json:"sent"`
	OK                  int `json:"ok"`
	Failed              int `json:"failed"`
	FailedAfterRecovery int `json:"failed_after_recovery"`
}

// Usage is what the agent used for itself over the drill.
type Usage struct {
	CPUSeconds  float64 `json:"cpu_seconds"`
	MaxRSSBytes int64   `json:"max_rss_bytes"`
	Samples     int64   `json:"samples"`
	LostSamples int64   `json:"lost_samples"`
}
