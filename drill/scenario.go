package drill

import (
	"path/filepath"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
)

// Scenario is a case together with how it is driven.
type Scenario struct {
	Case *Case
	Dir  string // the case folder; empty for an embedded one

	rate    int           // probes a second
	patient time.Duration // how long a probe waits for its answer
	after   time.Duration // how long to probe once all is well again
	storm   time.Duration // publish the poison again and again for this long
	kill    time.Duration // kill the agent at some moment up to this long after the trigger, and start another
	night   *night        // an upstream in trouble; nil: a worker is
	lift    bool          // lift the first quarantine once a worker is evicted
	rail    *rail         // the agent must stop half way; nil: it must heal
	share   float64       // least share of probes that must be answered; 0: no demand

	change string // part of what the incident says that the version changed
	values string // text that one value of the evidence must have
	leaf   string // word in the innermost frame of the evidence

	backends bool                // answer on Port1 and Port2
	edit     func(string) string // changes the proxy's configuration

	files func(run string) (string, error) // writes an embedded case folder
	agent func(*config.Config)             // changes the agent's configuration
}

// FromDir reads a case folder.
func FromDir(dir string) (*Scenario, error) {
	c, err := LoadCase(dir)
	if err != nil {
		return nil, err
	}
	return gentle(&Scenario{Case: c, Dir: dir}), nil
}

// gentle gives a case folder its usual probes: a few, so that they do not
// change what the case is about, and as patient as the case allows.
func gentle(sc *Scenario) *Scenario {
	sc.rate, sc.patient, sc.after = 20, time.Second, 2*time.Second
	if sc.Case.calm() {
		// nginx takes one new connection per turn of its loop, and the turns of
		// a busy worker are long: more probes would themselves be the fault.
		sc.rate, sc.patient = 4, sc.Case.Prove.answer()
	}
	return sc
}

// folder returns the case folder of a run as an absolute path.
func (sc *Scenario) folder(run string) (string, error) {
	if sc.files != nil {
		return sc.files(run)
	}
	return filepath.Abs(sc.Dir)
}
