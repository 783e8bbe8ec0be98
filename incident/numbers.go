package incident

import "time"

// Timeline holds milliseconds after Incident.Began, nil where a step did not
// happen.
type Timeline struct {
	Suspected   *int64 `json:"suspected"`
	Confirmed   *int64 `json:"confirmed"`
	Captured    *int64 `json:"captured"`
	Quarantined *int64 `json:"quarantined"`
	Evicted     *int64 `json:"evicted"`
	Recovered   *int64 `json:"recovered"`
}

// Step is one named point of a timeline.
type Step struct {
	Name string
	MS   int64
}

// Steps returns the steps that happened, in the order of a response.
func (t Timeline) Steps() []Step {
	all := []struct {
		name string
		ms   *int64
	}{
		{"suspected", t.Suspected}, {"confirmed", t.Confirmed}, {"captured", t.Captured},
		{"quarantined", t.Quarantined}, {"evicted", t.Evicted}, {"recovered", t.Recovered},
	}
	var steps []Step
	for _, s := range all {
		if s.ms != nil {
			steps = append(steps, Step{s.name, *s.ms})
		}
	}
	return steps
}

// MS returns the whole milliseconds from began to t, for a Timeline.
func MS(began, t time.Time) *int64 {
	ms := t.Sub(began).Milliseconds()
	return &ms
}

// Numbers are the counters of the worker over the incident. Times are in
// milliseconds.
type Numbers struct {
	StallMS    int64   `json:"stall_ms"`      // longest time without progress, CPU or (blocked) wall
	Standstill int64   `json:"standstill_ms"` // the same by the wall clock: what clients felt
	CPUMS      int64   `json:"cpu_ms"`        // CPU time used
	CPUShare   float64 `json:"cpu_share"`     // of one core, 0 to 1
	RunDelayMS int64   `json:"run_delay_ms"`  // waited for a CPU
	Throttled  int64   `json:"throttled_ms"`  // held back by its cgroup
	Voluntary  int64   `json:"voluntary"`     // voluntary context switches
}

// Samples is the quality of the evidence. Taken = Shown + everything in Lost.
type Samples struct {
	Taken     int64            `json:"taken"`     // made by the sampler
	Shown     int64            `json:"shown"`     // in the profile
	Lost      map[string]int64 `json:"lost"`      // by reason: "ring full", "process gone", ...
	Truncated int64            `json:"truncated"` // shown, but the stack ends early
	Unnamed   int64            `json:"unnamed"`   // frames without a symbol
	RateHz    int              `json:"rate_hz"`   // while suspected
}

// LostAll returns the sum over all reasons.
func (s Samples) LostAll() int64 {
	var n int64
	for _, v := range s.Lost {
		n += v
	}
	return n
}
