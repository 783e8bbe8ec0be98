package drill

import "time"

// Case is one case.yaml: a proxy, a fault, and what must be found. See
// scenarios/cases/README.md for the meaning of every key.
type Case struct {
	Name    string `yaml:"name"`
	Kind    string `yaml:"kind"` // one of A B C D V F
	About   string `yaml:"about"`
	Proxy   string `yaml:"proxy"`   // nginx or haproxy
	Workers int    `yaml:"workers"` // processes (nginx) or threads (haproxy)
	Config  string `yaml:"config"`  // file name of the template in the case folder
	Start   string `yaml:"start"`   // shell line instead of the usual start

	Healthy Request  `yaml:"healthy"`
	Healed  *Request `yaml:"healed"`
	Load    *Load    `yaml:"load"`

	Trigger        []Step `yaml:"trigger"`
	TriggerCommand string `yaml:"trigger_command"`
	CleanupCommand string `yaml:"cleanup_command"`

	Quarantine *Quarantine `yaml:"quarantine"`
	Culprit    *Culprit    `yaml:"culprit"`
	Agent      Settings    `yaml:"agent"`
	Expect     Expect      `yaml:"expect"`
	Prove      Hints       `yaml:"prove"`
}

// Request is one HTTP request.
type Request struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
}

// Step is one item of the trigger: a request sent Count times by Parallel
// clients.
type Step struct {
	Request    `yaml:",inline"`
	BodyRepeat int `yaml:"body_repeat"`
	Count      int `yaml:"count"`
	Parallel   int `yaml:"parallel"`
	TimeoutMS  int `yaml:"timeout_ms"`
}

// Load is keep-alive traffic in the background.
type Load struct {
	Path        string `yaml:"path"`
	Concurrency int    `yaml:"concurrency"`
	Seconds     int    `yaml:"seconds"`
}

// Quarantine says how a proxy without the library is told of a quarantine: the
// agent's hook appends a line to File, and Line is what it must write.
type Quarantine struct {
	File string `yaml:"file"`
	Line string `yaml:"line"`
}

// Culprit names the Lua frame and the locals that hold upstream and version.
type Culprit struct {
	Frame    string `yaml:"frame"`
	Upstream string `yaml:"upstream"`
	Version  string `yaml:"version"`
}

// Settings are the agent's for this case, over its defaults.
type Settings struct {
	ActAfter      time.Duration `yaml:"act_after"`
	EvictSpinning bool          `yaml:"evict_spinning"`
}

// Expect is what the agent must find and do.
type Expect struct {
	Verdict       string `yaml:"verdict"`
	WithinMS      int    `yaml:"within_ms"` // counted from the trigger
	Frame         string `yaml:"frame"`     // words that must occur in the hot path
	Request       string `yaml:"request"`
	Upstream      string `yaml:"upstream"`
	ConfigVersion string `yaml:"config_version"`
	Peer          string `yaml:"peer"`
	WorkersStuck  int    `yaml:"workers_stuck"`
	Victims       int    `yaml:"victims"`
	HolderVerdict string `yaml:"holder_verdict"`
	StallMS       int    `yaml:"stall_ms"`
	Heal          string `yaml:"heal"` // evict, quarantine+evict or none
	MustNotAct    bool   `yaml:"must_not_act"`
}

// The ways to heal.
const (
	healEvict      = "evict"
	healQuarantine = "quarantine+evict"
	healNone       = "none"
)

// calm says whether nothing is wrong in this case, so that any action is a
// failure.
func (c *Case) calm() bool { return c.Kind == "D" || c.Kind == "F" }

// evictions returns how many workers must be evicted in mode enforce.
func (e *Expect) evictions() int {
	if e.Heal == healNone || e.MustNotAct {
		return 0
	}
	return e.WorkersStuck - e.Victims
}
