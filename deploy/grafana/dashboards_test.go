package grafana

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the dashboards")

func TestDashboards(t *testing.T) {
	files, err := Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range files {
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code makes; run with -update", name)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", name)
		}
	}
}

// exist are the metrics that the agent has, as its own test wrote them down.
func exist(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../web/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
		if kind == "histogram" {
			names = append(names, name+"_bucket", name+"_sum", name+"_count")
		}
	}
	return names
}

var metric = regexp.MustCompile(`\bspinguard_[a-z_]+\b`)

func TestOnlyMetricsThatExist(t *testing.T) {
	names := exist(t)
	rules, err := os.ReadFile("../prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{string(rules)}
	for _, b := range boards {
		all = append(all, b.marks)
		for _, r := range b.rows {
			for _, p := range r.panels {
				for _, q := range p.queries {
					all = append(all, q.expr)
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, text := range all {
		for _, name := range metric.FindAllString(text, -1) {
			seen[name] = true
			// The balancer's are those of the library; the live test has them.
			if !slices.Contains(names, name) && !strings.HasPrefix(name, "spinguard_balancer_") {
				t.Errorf("%s does not exist: %.120s", name, text)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d metrics are used; is the search broken?", len(seen))
	}
}
