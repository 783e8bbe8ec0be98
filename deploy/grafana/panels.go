// Package grafana makes Spinguard's dashboards. The JSON files beside it are
// written by its test with -update; import those.
package grafana

// query is one line or number of a panel.
type query struct {
	expr   string
	legend string
}

// panel is one picture of a dashboard.
type panel struct {
	title   string
	help    string
	unit    string // of Grafana: "s", "percentunit", "bytes", "short", ...
	stat    bool   // one number instead of lines
	bad     bool   // a stat that is red above 0
	stacked bool
	width   uint32 // of 24 columns
	link    string // where a click on a value leads
	queries []query
}

// row is a titled group of panels.
type row struct {
	title  string
	panels []panel
}

const stuck = `verdict=~"runaway|blocked|spinning|lock_victim"`

// fleet is the overview over all nodes.
var fleet = []row{
	{"Now", []panel{
		{title: "Nodes", stat: true, unit: "short", width: 4, help: "Agents that answer.", queries: []query{{expr: `count(spinguard_build_info{job="$job"})`}}},
		{title: "Stuck workers", stat: true, bad: true, unit: "short", width: 4, help: "Workers that hang at this moment.",
			queries: []query{{expr: `sum(spinguard_workers{job="$job",` + stuck + `})`}}},
		{title: "In quarantine", stat: true, bad: true, unit: "short", width: 4, help: "Upstreams that run on their last good version.",
			queries: []query{{expr: `sum(spinguard_quarantines{job="$job"}) or vector(0)`}}},
		{title: "Incidents in 24 h", stat: true, unit: "short", width: 4, queries: []query{{expr: `sum(increase(spinguard_incidents_total{job="$job"}[24h]))`}}},
		{title: "Blind agents", stat: true, bad: true, unit: "short", width: 4, help: "Agents whose sampler does not work.",
			queries: []query{{expr: `count(spinguard_sampler_up{job="$job"} == 0) or vector(0)`}}},
		{title: "Nodes in enforce", stat: true, unit: "short", width: 4, help: "The others only observe.", queries: []query{{expr: `sum(spinguard_enforcing{job="$job"})`}}},
	}},
	{"Stalls", []panel{
		{title: "Time lost in stalls", unit: "percentunit", width: 12, help: "Share of the workers' time without progress, running stalls included.",
			queries: []query{{`sum by (proxy) (rate(spinguard_stalled_seconds_total{job="$job"}[$__rate_interval])) / sum by (proxy) (spinguard_workers{job="$job"})`, "{{proxy}}"}}},
		{title: "Length of stalls", unit: "s", width: 12, help: "Stalls of over 100 ms that have ended.", queries: []query{
			{`histogram_quantile(0.5, sum by (le) (rate(spinguard_stall_seconds_bucket{job="$job"}[$__rate_interval])))`, "median"},
			{`histogram_quantile(0.99, sum by (le) (rate(spinguard_stall_seconds_bucket{job="$job"}[$__rate_interval])))`, "99 %"}}},
		{title: "Workers by verdict", unit: "short", stacked: true, width: 12, queries: []query{{`sum by (verdict) (spinguard_workers{job="$job"})`, "{{verdict}}"}}},
		{title: "Incidents and evictions", unit: "short", width: 12, queries: []query{
			{`sum by (verdict) (increase(spinguard_incidents_total{job="$job"}[$__rate_interval]))`, "{{verdict}}"},
			{`sum(increase(spinguard_evictions_total{job="$job"}[$__rate_interval]))`, "evicted"},
			{`sum(increase(spinguard_actions_refused_total{job="$job"}[$__rate_interval]))`, "refused by a rail"}}},
	}},
	{"Nodes", []panel{
		{title: "Time since the last incident", unit: "s", width: 12, help: "Only proxies that had one. A click opens its report.", link: "http://${__field.labels.instance}/incidents/latest?proxy=${__field.labels.proxy}",
			queries: []query{{`time() - max by (instance, proxy) (spinguard_incident_last_timestamp_seconds{job="$job"} > 0)`, "{{instance}} {{proxy}}"}}},
		{title: "CPU time of the agents", unit: "percentunit", width: 12, help: "Of one core.",
			queries: []query{{`rate(spinguard_agent_cpu_seconds_total{job="$job"}[$__rate_interval])`, "{{instance}}"}}},
	}},
}

// node is the view of one host.
var node = []row{
	{"Workers", []panel{
		{title: "CPU time", unit: "percentunit", width: 12, help: "Of one core.",
			queries: []query{{`rate(spinguard_worker_cpu_seconds_total{job="$job",instance="$instance"}[$__rate_interval])`, "{{proxy}} {{worker}}"}}},
		{title: "Time since the last progress", unit: "s", width: 12, help: "An idle worker waits for events; that is no stall.",
			queries: []query{{`spinguard_worker_stall_seconds{job="$job",instance="$instance"}`, "{{proxy}} {{worker}}"}}},
		{title: "Verdicts", unit: "short", stacked: true, width: 12, queries: []query{{`sum by (verdict) (spinguard_workers{job="$job",instance="$instance"})`, "{{verdict}}"}}},
		{title: "File descriptors in use", unit: "percentunit", width: 12, help: "Of each worker's soft limit.",
			queries: []query{{`spinguard_worker_open_fds{job="$job",instance="$instance"} / spinguard_worker_max_fds{job="$job",instance="$instance"}`, "{{proxy}} {{worker}}"}}},
	}},
	{"Incidents", []panel{
		{title: "Incidents", unit: "short", width: 8, queries: []query{{`sum by (proxy, verdict) (increase(spinguard_incidents_total{job="$job",instance="$instance"}[$__rate_interval]))`, "{{proxy}} {{verdict}}"}}},
		{title: "Quarantines in force", unit: "short", width: 8, queries: []query{{`sum by (proxy, upstream) (spinguard_quarantines{job="$job",instance="$instance"})`, "{{proxy}} {{upstream}}"}}},
		{title: "Evictions and quarantines", unit: "short", width: 8, queries: []query{
			{`sum by (proxy) (increase(spinguard_evictions_total{job="$job",instance="$instance"}[$__rate_interval]))`, "{{proxy}} evicted"},
			{`sum by (proxy) (increase(spinguard_quarantines_total{job="$job",instance="$instance"}[$__rate_interval]))`, "{{proxy}} quarantined"}}},
	}},
	{"Agent", []panel{
		{title: "Samples", unit: "cps", width: 8, queries: []query{
			{`rate(spinguard_samples_total{job="$job",instance="$instance"}[$__rate_interval])`, "taken"},
			{`sum by (reason) (rate(spinguard_samples_lost_total{job="$job",instance="$instance"}[$__rate_interval]))`, "lost: {{reason}}"}}},
		{title: "CPU time", unit: "percentunit", width: 8, help: "Of one core.", queries: []query{{`rate(spinguard_agent_cpu_seconds_total{job="$job",instance="$instance"}[$__rate_interval])`, "agent"}}},
		{title: "Memory", unit: "bytes", width: 8, queries: []query{{`spinguard_agent_resident_memory_bytes{job="$job",instance="$instance"}`, "resident"}}},
		{title: "Up since", stat: true, unit: "s", width: 6, queries: []query{{expr: `time() - spinguard_agent_start_time_seconds{job="$job",instance="$instance"}`}}},
		{title: "Incidents on disk", stat: true, unit: "short", width: 6, queries: []query{{expr: `spinguard_incidents_kept{job="$job",instance="$instance"}`}}},
	}},
}
