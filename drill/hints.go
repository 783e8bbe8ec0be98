package drill

import (
	"time"

	"gopkg.in/yaml.v3"
)

// Hints is the part of `prove` that shapes how long a drill watches and how
// patient its requests are. The other keys of `prove` are meant for a verifier
// that knows nothing of the agent, and are skipped.
type Hints struct {
	WatchMS      int // how long to watch a calm case
	AnswerMS     int // patience per healthy request of a calm case
	QuietMS      int // ask nothing at first
	EndsWithinMS int // a stall that ends by itself does so in this time
}

// UnmarshalYAML reads the keys that a drill uses and accepts any other.
func (h *Hints) UnmarshalYAML(n *yaml.Node) error {
	var raw struct {
		WatchMS      int `yaml:"watch_ms"`
		AnswerMS     int `yaml:"answer_ms"`
		QuietMS      int `yaml:"quiet_ms"`
		EndsWithinMS int `yaml:"ends_within_ms"`
	}
	if err := n.Decode(&raw); err != nil {
		return err
	}
	*h = Hints(raw)
	return nil
}

func (h Hints) watch() time.Duration  { return msOr(h.WatchMS, 6000) }
func (h Hints) answer() time.Duration { return msOr(h.AnswerMS, 2000) }
func (h Hints) ends() time.Duration   { return msOr(h.EndsWithinMS, 20000) }
func (h Hints) quiet() time.Duration  { return time.Duration(h.QuietMS) * time.Millisecond }

func msOr(ms, other int) time.Duration {
	if ms <= 0 {
		ms = other
	}
	return time.Duration(ms) * time.Millisecond
}
