package drill

import (
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"

	"github.com/spinguard/spinguard/balancer"
)

// own is a scenario of the project itself. Its proxy uses the library, and its
// backends are the drill's own.
type own struct {
	dir   string // below scenarios
	about string
	drive func(*Scenario)
}

var owns = map[string]own{
	"gcd-nan": {"gcd-nan", "a poisoned weight hangs every worker: found, quarantined, evicted", poison},
	"gcd-nan-nojit": {"gcd-nan", "the same with LuaJIT's compiler off", func(sc *Scenario) {
		poison(sc)
		sc.edit = func(conf string) string {
			return strings.Replace(conf, `require("jit").on()`, `require("jit").off()`, 1)
		}
	}},
	"gcd-nan-four": {"gcd-nan", "four workers hang on the same weight: one incident, all replaced", func(sc *Scenario) {
		poison(sc)
		sc.Case.Workers, sc.Case.Expect.WorkersStuck = 4, 4
		sc.edit = func(conf string) string {
			return strings.Replace(conf, "worker_processes 2;", "worker_processes 4;", 1)
		}
	}},
	"gcd-nan-storm": {"gcd-nan", "the poison is published ten times a second for 30 s", func(sc *Scenario) {
		poison(sc)
		sc.storm, sc.share, sc.after = 30*time.Second, 0.95, 2*time.Second
		// The quarantine outlasts the storm: its end, with the poison still
		// published, costs one worker again, and is not this drill's subject.
		sc.agent = func(c *config.Config) { c.Rails.QuarantineBase = time.Minute }
	}},
	"gcd-nan-agent-killed": {"gcd-nan", "the agent is killed at some moment of the drill, and another takes over", func(sc *Scenario) {
		poison(sc)
		sc.kill, sc.Case.Expect.WithinMS = 1500*time.Millisecond, 10_000
	}},
	"rail-bucket":          {"gcd-nan", "the bucket holds one eviction for two stuck workers", railBucket},
	"rail-lift":            {"gcd-nan", "an operator lifts the quarantine during the response", railLift},
	"rail-no-respawn":      {"gcd-nan", "the master is stopped and starts no successor", railNoRespawn},
	"rail-panic":           {"rail-panic", "both upstreams of a proxy are poisoned", railPanic},
	"rail-stuck-again":     {"cases/gcd-nan", "nothing can be quarantined, so the successor hangs too", railStuckAgain},
	"night-malformed":      {"night", "one client's requests make backends close the connection", nightMalformed},
	"night-malformed-twin": {"night", "the same with nginx's own upstream: every peer goes down", twinOf(nightMalformed, plainUpstream)},
	"night-empty":          {"night", "the registry publishes an empty list", nightEmpty},
	"night-empty-twin":     {"night", "the same with a balancer that believes its registry", twinOf(nightEmpty, trustingRegistry)},
	"night-halved":         {"night", "the registry publishes two of five peers", nightHalved},
	"night-halved-twin":    {"night", "the same with a balancer that believes its registry", twinOf(nightHalved, trustingRegistry)},
	"night-retries":        {"night", "four times the load that the backends can carry", nightRetries},
	"night-retries-twin":   {"night", "the same without admission control", twinOf(nightRetries, without("rate"))},
	"night-flapping":       {"night", "a peer comes and goes every 200 ms", nightFlapping},
	"night-flapping-twin":  {"night", "the same without damping", twinOf(nightFlapping, without("flap_window"))},
	"night-cold":           {"night", "cold caches, bounded new connections", nightCold},
	"night-cold-twin":      {"night", "the same without the bound", twinOf(nightCold, without("max_new"))},
	"night-files":          {"night", "a worker has no file handles left", nightFiles},
	"night-files-twin":     {"night", "the same with a balancer that checks its peers from the worker", twinOf(nightFiles, checkingBalancer)},
	"negative-pipelined":   {"negative", "many requests are served within one turn of the loop: nothing may be done", negativeBy(pipelined)},
	"negative-hogs":        {"negative", "other programs take all CPUs: nothing may be done", negativeBy(hogs)},
	"negative-debugger":    {"negative", "a debugger holds a worker for 4 s: nothing may be done", negativeBy(debugger)},
	"negative-paused":      {"negative", "agent and workers are paused for 4 s: nothing may be done", negativeBy(paused)},
	"negative-frozen":      {"negative", "the cgroup of the workers is frozen for 4 s: nothing may be done", negativeFrozen},
	"haproxy-lua":          {"haproxy-lua", "a thread of HAProxy hangs in Lua: told with place and server before HAProxy ends itself", func(*Scenario) {}},
	"saturated":            {"saturated", "workers at full CPU that answer everything: nothing may be done", func(*Scenario) {}},
	"stopped":              {"stopped", "a worker is stopped for 3 s and goes on: nothing may be done", func(*Scenario) {}},
}

// poison probes hard, so that every worker takes a request within
// milliseconds, and for ten seconds after the recovery.
func poison(sc *Scenario) {
	sc.rate, sc.patient, sc.after = 200, time.Second, 10*time.Second
	sc.values, sc.leaf, sc.change = "nan", "gcd", `weight "0"`
}

// ownScenario reads one of owns.
func ownScenario(name string, o own) (*Scenario, error) {
	sc, err := embeddedCase("scenarios/" + o.dir)
	if err != nil {
		return nil, err
	}
	sc.Case.Name, sc.backends = name, true
	cases := sc.files
	sc.files = func(run string) (string, error) {
		lua, err := fs.Sub(balancer.Lua, "lua")
		if err != nil {
			return "", err
		}
		if err := unpackFS(lua, ".", filepath.Join(run, "lua")); err != nil {
			return "", err
		}
		return cases(run)
	}
	o.drive(sc)
	return sc, nil
}
