package drill

import "github.com/spinguard/spinguard/watchdog/config"

// The modes of a drill.
const (
	ModeEnforce = string(config.Enforce) // the agent acts
	ModeObserve = string(config.Observe) // the agent finds the same and does nothing
	ModeNone    = "none"                 // no agent: only the fault, to try out a case
)

// Options say how to run a scenario.
type Options struct {
	Mode   string // ModeEnforce where empty
	Out    string // folder to keep results in, made if needed; a fresh one below the temporary folder where empty
	Binary string // the spinguard program that is started as agent; the running one where empty

	// Say is called with one line for each thing that happens, at most a few
	// a second, from one goroutine at a time. Nil: nothing is said.
	Say func(Line)

	lasting *lasting // of the series; nil: an agent for each scenario
}

// Line is one line of progress.
type Line struct {
	Kind string // prepare, trigger, the steps of a timeline, note, end
	MS   int64  // milliseconds after the trigger; negative before it
	Text string
}
