package grafana

import "strings"

// these chooses the series of the upstreams that are looked at.
const these = `job="$job",instance=~"$instance",upstream=~"$upstream"`

// sums is the sum of the rates of some of the balancer's counters.
func sums(by string, names ...string) string {
	var terms []string
	for _, n := range names {
		terms = append(terms, `sum `+by+`(rate(spinguard_balancer_`+n+`_total{`+these+`}[$__rate_interval]))`)
	}
	return strings.Join(terms, " + ")
}

// each is one line for each of the balancer's counters.
func each(names ...string) []query {
	var list []query
	for _, n := range names {
		list = append(list, query{sums("", n), strings.ReplaceAll(n, "_", " ")})
	}
	return list
}

// balancer is what the in-proxy library counts.
var balancer = []row{
	{"Requests", []panel{
		{title: "Requests", unit: "reqps", width: 12, help: "By upstream, those refused included.",
			queries: []query{{sums("by (upstream) ", "requests_started", "rejected_rate", "rejected_bound", "rejected_poison", "rejected_route", "rejected_version", "rejected_empty"), "{{upstream}}"}}},
		{title: "Not answered", unit: "percentunit", width: 12, help: "Share of all requests that got no answer of a peer: failed, refused, given up by the client, and those that hang. " +
			"Needs guard and log in the location.",
			queries: []query{{`spinguard:balancer_unanswered:ratio_rate5m{job="$job",upstream=~"$upstream"}`, "{{upstream}}"}}},
		{title: "In flight", unit: "short", width: 8, help: "What live workers are busy with. Requests that hang stay here.",
			queries: []query{{`sum by (upstream) (spinguard_balancer_requests_in_flight{` + these + `})`, "{{upstream}}"}}},
		{title: "Started, ended, lost", unit: "reqps", width: 8, help: "Lost: their worker was killed.", queries: each("requests_started", "requests_finished", "requests_lost")},
		{title: "Refused", unit: "reqps", stacked: true, width: 8, queries: each("rejected_rate", "rejected_bound", "rejected_poison", "rejected_route", "rejected_version", "rejected_empty")},
	}},
	{"Peers", []panel{
		{title: "Tries by outcome", unit: "reqps", stacked: true, width: 12, queries: each("tries_success", "tries_failure", "tries_timeout", "tries_unconnected", "tries_aborted", "tries_local")},
		{title: "Retries", unit: "reqps", width: 6, queries: each("retries_granted", "retries_denied")},
		{title: "Peers taken out", unit: "cps", width: 6, help: "Capped: not taken out, since enough are. Panics: picks of peers that are out.", queries: each("ejections", "ejections_capped", "panics")},
		{title: "Connections", unit: "cps", stacked: true, width: 12, queries: each("connections_opened", "connections_reused")},
		{title: "Picks", unit: "cps", width: 12, help: "Bound hits: every peer was at its bound. Fallback: the plain rotation stood in for a picker of the user.",
			queries: each("picks", "fallback_picks", "bound_hits")},
	}},
	{"Configuration", []panel{
		{title: "Newest version", unit: "short", width: 8, queries: []query{{`max by (instance, upstream) (spinguard_balancer_published_version{` + these + `})`, "{{instance}} {{upstream}}"}}},
		{title: "Refused updates", unit: "short", width: 8, help: "A registry that lies is seen here first.",
			queries: []query{{`sum by (reason) (increase(spinguard_balancer_refused_updates_total{job="$job",instance=~"$instance"}[$__rate_interval]))`, "{{reason}}"}}},
		{title: "Pickers", unit: "cps", width: 4, queries: each("builds", "build_failures")},
		{title: "Quarantines in force", stat: true, bad: true, unit: "short", width: 4,
			queries: []query{{expr: `sum(spinguard_balancer_quarantines{job="$job",instance=~"$instance"})`}}},
	}},
}
