package grafana

// one chooses the series of the proxy that is looked at.
const one = `job="$job",instance="$instance",proxy="$proxy"`

// oneIncident is what the numbers say of one incident: the last one in the
// time that is shown. Report and flame graph are behind the links above it.
var oneIncident = []row{
	{"The incident", []panel{
		{title: "Began", stat: true, unit: "dateTimeAsIso", width: 6, help: "The last incident in the time that is shown. A click opens its report.", link: theIncident,
			queries: []query{{expr: `(spinguard_incident_last_timestamp_seconds{` + one + `} > 0) * 1000`}}},
		{title: "Verdicts", stat: true, unit: "short", width: 6, help: "Incidents in the time that is shown, by the verdict that opened them.",
			queries: []query{{`sum by (verdict) (increase(spinguard_incidents_total{` + one + `}[$__range])) > 0`, "{{verdict}}"}}},
		{title: "Time lost", stat: true, unit: "s", width: 3, help: "In stalls, all workers together.",
			queries: []query{{expr: `sum(increase(spinguard_stalled_seconds_total{` + one + `}[$__range]))`}}},
		{title: "Evicted", stat: true, unit: "short", width: 3, queries: []query{{expr: `round(sum(increase(spinguard_evictions_total{` + one + `}[$__range])))`}}},
		{title: "Quarantines made", stat: true, unit: "short", width: 3, queries: []query{{expr: `round(sum(increase(spinguard_quarantines_total{` + one + `}[$__range])))`}}},
		{title: "Refused by a rail", stat: true, bad: true, unit: "short", width: 3, help: "Above 0 a person has to decide: the report says which rail.",
			queries: []query{{expr: `round(sum(increase(spinguard_actions_refused_total{` + one + `}[$__range])))`}}},
	}},
	{"The workers", []panel{
		{title: "Verdicts", unit: "short", stacked: true, width: 12, link: theIncident, queries: []query{{`sum by (verdict) (spinguard_workers{` + one + `})`, "{{verdict}}"}}},
		{title: "Time since the last progress", unit: "s", width: 12, link: theIncident, help: "An idle worker waits for events; that is no stall.",
			queries: []query{{`spinguard_worker_stall_seconds{` + one + `}`, "worker {{worker}}"}}},
		{title: "CPU time", unit: "percentunit", width: 12, help: "Of one core.",
			queries: []query{{`rate(spinguard_worker_cpu_seconds_total{` + one + `}[$__rate_interval])`, "worker {{worker}}"}}},
		{title: "CPU time of requests", unit: "percentunit", stacked: true, width: 12, help: "By upstream, of one core, estimated from samples.",
			queries: []query{{`sum by (upstream) (rate(spinguard_request_cpu_seconds_total{` + one + `}[$__rate_interval]))`, "{{upstream}}"}}},
	}},
	{"Around it", []panel{
		{title: "Quarantines in force", unit: "short", width: 8, queries: []query{{`sum by (upstream) (spinguard_quarantines{` + one + `})`, "{{upstream}}"}}},
		{title: "Workers that were replaced", unit: "short", width: 8, help: "By the agent or by anybody else.", queries: []query{
			{`increase(spinguard_evictions_total{` + one + `}[$__rate_interval])`, "evicted"},
			{`increase(spinguard_worker_restarts_total{` + one + `}[$__rate_interval])`, "new processes"}}},
		{title: "The host", unit: "cps", width: 8, help: "Connections that no worker took, and connects that failed.", queries: []query{
			{`rate(spinguard_listen_overflows_total{job="$job",instance="$instance"}[$__rate_interval])`, "listen queue overflows"},
			{`rate(spinguard_connect_failures_total{job="$job",instance="$instance"}[$__rate_interval])`, "failed connects"},
			{`rate(spinguard_syn_retransmits_total{job="$job",instance="$instance"}[$__rate_interval])`, "repeated SYNs"}}},
	}},
}
