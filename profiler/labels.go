package profiler

import "github.com/google/pprof/profile"

// Labels are what a sample is told apart by in a profile, besides its stack.
// Empty ones are left out.
type Labels struct {
	Proxy    string // name of the proxy
	Worker   string // its pid, or pid/tid where a process has several workers
	Upstream string
	Version  string
	Request  string // method and path, masked
	Verdict  string
	State    string // what the Lua VM was doing, see Result.State
}

// pairs lists the labels in the order of their names.
func (l Labels) pairs() [7][2]string {
	return [7][2]string{
		{"proxy", l.Proxy}, {"request", l.Request}, {"upstream", l.Upstream}, {"verdict", l.Verdict},
		{"version", l.Version}, {"vm_state", l.State}, {"worker", l.Worker},
	}
}

func (l Labels) set(s *profile.Sample) {
	for _, p := range l.pairs() {
		if p[1] == "" {
			continue
		}
		if s.Label == nil {
			s.Label = map[string][]string{}
		}
		s.Label[p[0]] = []string{p[1]}
	}
}
