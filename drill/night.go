package drill

import (
	"fmt"
	"strings"
	"time"
)

// night is a scenario in which no worker hangs: an upstream is in trouble, and
// the library must keep what it promises. Its twin is the same night without
// the protection, in which a promise must break: else the night would prove
// nothing.
type night struct {
	takes time.Duration // of one request at a backend
	slots int           // requests that a backend works on at the same time; 0: any
	fault func(*nightRun)
	check func(*nightFacts) []string // the promises that were broken
	twin  bool

	signal string // kind of the host's signal that the agent must tell; empty: none
}

const nightPeers = 5

// nightOf makes a scenario of a night. options are those of the upstream, in
// Lua.
func nightOf(n night, about, options string, rate int) func(*Scenario) {
	return func(sc *Scenario) {
		sc.night, sc.backends = &n, false
		sc.rate, sc.patient, sc.after = rate, time.Second, 500*time.Millisecond
		sc.Case.About = about
		sc.edit = func(conf string) string { return strings.Replace(conf, "-- OPTIONS", options, 1) }
	}
}

// twinOf makes the twin of a night: unprotect changes its configuration.
func twinOf(real func(*Scenario), unprotect func(string) string) func(*Scenario) {
	return func(sc *Scenario) {
		real(sc)
		n := *sc.night
		n.twin, sc.night = true, &n
		sc.Case.About += " Here the protection is off, and it must hurt."
		protected := sc.edit
		sc.edit = func(conf string) string { return unprotect(protected(conf)) }
	}
}

// without switches options off by writing over them.
func without(names ...string) func(string) string {
	return func(conf string) string {
		off := ""
		for _, n := range names {
			off += n + " = false,\n"
		}
		return strings.Replace(conf, "    })\n    local peers", off+"    })\n    local peers", 1)
	}
}

// plainUpstream replaces the library by nginx's own balancer.
func plainUpstream(conf string) string {
	head, rest, _ := strings.Cut(conf, "# PEERS\n")
	_, tail, _ := strings.Cut(rest, "# END\n")
	_, after, _ := strings.Cut(conf, "for port = ")
	var first int
	_, _ = fmt.Sscan(after, &first)
	servers := ""
	for i := range nightPeers {
		servers += fmt.Sprintf("server 127.0.0.1:%d;\n", first+i)
	}
	return head + servers + tail
}

// trustingRegistry replaces the library by a balancer that believes whatever
// its registry says.
func trustingRegistry(conf string) string {
	return strings.NewReplacer(`spinguard.balance("shop")`, "trusting.balance()", "spinguard.admin()", "trusting.admin()",
		`spinguard.guard("shop")`, "", "spinguard.log()", "").Replace(conf)
}
