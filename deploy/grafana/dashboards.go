package grafana

// board is one dashboard.
type board struct {
	title string
	uid   string // also the name of its file
	vars  []choice
	rows  []row
	links []link
	// Where incidents began is marked in the panels by this query, whose
	// values are times in seconds since 1970; empty: not marked.
	marks string
}

// choice is a variable that the reader of a dashboard sets.
type choice struct {
	name, query string
	all         bool // may be all of them
}

// link is an address at the top of a dashboard.
type link struct {
	title, url string
	outside    bool // not of Grafana
}

const (
	// The incident is that which began last in the time that is shown; the
	// agent finds it, since no metric has a label without bound.
	theIncident = "http://${instance}/incidents/latest?proxy=${proxy}&at=${__to:date:seconds}"
	jobs        = `label_values(spinguard_build_info, job)`
	instances   = `label_values(spinguard_build_info{job="$job"}, instance)`
)

var boards = []board{
	{title: "Spinguard: fleet", uid: "spinguard-fleet", rows: fleet, vars: []choice{{name: "job", query: jobs}},
		links: []link{{"One incident", "/d/spinguard-incident", false}, {"Balancer", "/d/spinguard-balancer", false}}},
	{title: "Spinguard: node", uid: "spinguard-node", rows: node, vars: []choice{{name: "job", query: jobs}, {name: "instance", query: instances}},
		links: []link{{"Fleet", "/d/spinguard-fleet", false}, {"One incident", "/d/spinguard-incident?var-instance=${instance}", false},
			{"Page of this agent: reports and flame graphs", "http://${instance}/incidents", true}},
		marks: `spinguard_incident_last_timestamp_seconds{job="$job",instance="$instance"}`},
	{title: "Spinguard: one incident", uid: "spinguard-incident", rows: oneIncident,
		vars: []choice{{name: "job", query: jobs}, {name: "instance", query: instances},
			{name: "proxy", query: `label_values(spinguard_incident_last_timestamp_seconds{job="$job",instance="$instance"}, proxy)`}},
		links: []link{{"Report", theIncident, true}, {"Flame graph", theIncident + "&file=flamegraph.svg", true},
			{"Difference to before", theIncident + "&file=diff.svg", true}, {"Node", "/d/spinguard-node?var-instance=${instance}", false}},
		marks: `spinguard_incident_last_timestamp_seconds{job="$job",instance="$instance",proxy="$proxy"}`},
	{title: "Spinguard: balancer", uid: "spinguard-balancer", rows: balancer,
		vars: []choice{{name: "job", query: `label_values(spinguard_balancer_picks_total, job)`},
			{name: "instance", query: `label_values(spinguard_balancer_picks_total{job="$job"}, instance)`, all: true},
			{name: "upstream", query: `label_values(spinguard_balancer_picks_total{job="$job"}, upstream)`, all: true}},
		links: []link{{"Fleet", "/d/spinguard-fleet", false}}},
}
