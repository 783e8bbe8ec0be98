// Package config is the agent's configuration: one struct, read from YAML,
// checked with line numbers.
package config

import "time"

// Mode says whether the agent may act on a worker.
type Mode string

// Observe does everything but the last steps; Enforce also quarantines and evicts.
const (
	Observe Mode = "observe"
	Enforce Mode = "enforce"
)

// Config is the whole configuration. Every field has a default; see Default.
type Config struct {
	Mode          Mode       `yaml:"mode" doc:"observe, or enforce: also quarantine and evict"`
	StateDir      string     `yaml:"state_dir" doc:"where incidents are kept"`
	RunDir        string     `yaml:"run_dir" doc:"socket and lock of the agent"`
	Listen        string     `yaml:"listen" doc:"address of page, API and metrics; one that is not loopback needs tls, and SPINGUARD_TOKEN or tls.client_ca; empty: only the unix socket"`
	TLS           TLS        `yaml:"tls"`
	Node          string     `yaml:"node" doc:"name of this node in incidents; default: host name"`
	LogLevel      string     `yaml:"log_level" doc:"debug, info, warn or error"`
	LogFormat     string     `yaml:"log_format" doc:"console or json"`
	Masters       []int      `yaml:"masters" doc:"watch only the proxies with these master pids, and their binary upgrades; empty: every proxy found"`
	Sampling      Sampling   `yaml:"sampling"`
	Thresholds    Thresholds `yaml:"thresholds"`
	EvictSpinning bool       `yaml:"evict_spinning" doc:"evict also workers whose loop turns without getting anywhere"`
	ShowQueries   bool       `yaml:"show_queries" doc:"keep query strings in evidence; default: masked"`
	RequestBudget Budget     `yaml:"request_budget"`
	Culprits      []Culprit  `yaml:"culprits" doc:"Lua frames whose locals name upstream and version, for proxies without the library"`
	GoPprof       []GoPprof  `yaml:"go_pprof" doc:"where Go proxies tell what their goroutines do; asked for only while they are busy"`
	Signals       Signals    `yaml:"signals"`
	HAProxy       HAProxy    `yaml:"haproxy"`
	Hook          Hook       `yaml:"quarantine_hook"`
	Rails         Rails      `yaml:"rails"`
	Retention     Retention  `yaml:"retention"`
	Notify        Notify     `yaml:"notify"`
	Export        Export     `yaml:"export"`
}

// Sampling sets the rates of the sampler.
type Sampling struct {
	Rate  int `yaml:"rate" doc:"samples a second per CPU in the steady state"`
	Burst int `yaml:"burst" doc:"samples a second of a suspected worker"`
}

// Thresholds are the judge's. Suspect, Runaway and ActAfter are CPU time
// without progress; Blocked and Spinning are wall time.
type Thresholds struct {
	Suspect  time.Duration `yaml:"suspect" doc:"CPU time without progress: watch it closely"`
	Runaway  time.Duration `yaml:"runaway" doc:"CPU time without progress: an incident"`
	Blocked  time.Duration `yaml:"blocked" doc:"asleep outside of the event wait: an incident"`
	Spinning time.Duration `yaml:"spinning" doc:"turning the loop for nothing: an incident"`
	ActAfter time.Duration `yaml:"act_after" doc:"how long a stall must last before the worker is evicted, unless a picker is proven to run"`
	Young    time.Duration `yaml:"young" doc:"CPU time that a starting worker may use before its first turn"`
}

// Budget bounds the CPU time of one request, and says what becomes of routes
// whose requests go over it again and again.
type Budget struct {
	CPU        time.Duration `yaml:"cpu" doc:"CPU time of one request; one that uses more is logged with its stack; 0: no budget"`
	Offences   int           `yaml:"offences" doc:"quarantine a route once so many of its requests went over; 0: never. Needs mode enforce and the library"`
	Within     time.Duration `yaml:"within" doc:"the time in which so many must go over"`
	Quarantine time.Duration `yaml:"quarantine" doc:"length of a first quarantine of a route; doubled each time, up to rails.quarantine_max"`
}

// Culprit says how to read upstream and version off a stuck Lua stack.
type Culprit struct {
	Frame    string `yaml:"frame" doc:"file name of the Lua chunk, such as wrr.lua"`
	Upstream string `yaml:"upstream" doc:"local or argument that holds the upstream's name; upstream.name is a field of the table in it"`
	Version  string `yaml:"version" doc:"local or argument that holds the version, or a field of it"`
}

// GoPprof says where a Go proxy answers pprof.
type GoPprof struct {
	Proxy string `yaml:"proxy" doc:"beginning of the proxy's name, such as caddy"`
	URL   string `yaml:"url" doc:"its pprof endpoint on loopback, such as http://127.0.0.1:2019/debug/pprof"`
}

// Signals says what of the host is watched beyond what costs nothing.
type Signals struct {
	Connects When `yaml:"connects" doc:"count the workers' TCP connects by peer, in the kernel: always, suspected (while something hints at trouble with them) or never"`
}

// When says when something that costs is done.
type When string

// Always, only on suspicion, or never.
const (
	Always    When = "always"
	Suspected When = "suspected"
	Never     When = "never"
)

// HAProxy says what is done to the servers of HAProxy.
type HAProxy struct {
	Quarantine Quarantine `yaml:"quarantine" doc:"maint: the server gets nothing and its sessions may be ended; drain: it gets only what is bound to it by persistence; weight: its weight becomes 0"`
}

// Quarantine is a way to take a server of HAProxy out of its backend.
type Quarantine string

// Maint stops checks and traffic, Drain new traffic but for persistence, Weight
// new traffic of the balancing algorithm.
const (
	Maint  Quarantine = "maint"
	Drain  Quarantine = "drain"
	Weight Quarantine = "weight"
)

// Hook carries a quarantine to a balancer that does not read the ledger.
// Either File or Command is set, or neither.
type Hook struct {
	File    string        `yaml:"file" doc:"append one line per quarantine to this file"`
	Line    string        `yaml:"line" doc:"the line, a text/template with .Upstream and .Version"`
	Command []string      `yaml:"command" doc:"run this program, without a shell; arguments are templates too"`
	Timeout time.Duration `yaml:"timeout" doc:"how long the command may take"`
}

// Rails bound what the agent may do.
type Rails struct {
	Evictions      int           `yaml:"evictions" doc:"size of the token bucket of evictions"`
	EvictionRefill time.Duration `yaml:"eviction_refill" doc:"one more eviction each"`
	QuarantineBase time.Duration `yaml:"quarantine_base" doc:"length of a first quarantine; doubled each time"`
	QuarantineMax  time.Duration `yaml:"quarantine_max" doc:"length of the longest quarantine"`
	PanicShare     float64       `yaml:"panic_share" doc:"stop quarantining once this share of the upstreams would be"`
}

// Retention bounds the incidents on disk.
type Retention struct {
	Count int   `yaml:"count" doc:"incidents kept at most"`
	Bytes int64 `yaml:"bytes" doc:"disk space that they may take"`
}

// Default returns the configuration that an empty file means.
func Default() Config {
	return Config{
		Mode: Observe, StateDir: "/var/lib/spinguard", RunDir: "/run/spinguard", Listen: "127.0.0.1:9517",
		LogLevel: "info", LogFormat: "console",
		Sampling: Sampling{Rate: 49, Burst: 499},
		Thresholds: Thresholds{
			Suspect: 100 * time.Millisecond, Runaway: 300 * time.Millisecond, Blocked: time.Second,
			Spinning: 2 * time.Second, ActAfter: 5 * time.Second, Young: 10 * time.Second,
		},
		Signals:       Signals{Connects: Suspected},
		HAProxy:       HAProxy{Quarantine: Maint},
		RequestBudget: Budget{Within: time.Minute, Quarantine: time.Minute},
		Hook:          Hook{Line: "{{.Upstream}} {{.Version}}", Timeout: 5 * time.Second},
		Rails: Rails{
			Evictions: 16, EvictionRefill: 15 * time.Second,
			QuarantineBase: 30 * time.Second, QuarantineMax: 300 * time.Second, PanicShare: 0.5,
		},
		Retention: Retention{Count: 200, Bytes: 1 << 30},
		Export:    Export{Name: "spinguard"},
	}
}
