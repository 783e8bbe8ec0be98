package grafana

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/incident"
)

// Every query of every dashboard and every rule, in a real Prometheus that
// scrapes a real agent and a real nginx through a night: they have data, the
// links lead to the incident, and promtool finds nothing to say of the metrics.
func TestLive(t *testing.T) {
	promtool := need(t, "promtool")
	program := need(t, "prometheus")
	n := startNight(t)
	base := startPrometheus(t, program, n)
	eventually(t, "both are scraped, twice", func() bool {
		data, _ := ask(base, "query?query="+url.QueryEscape(`count(count_over_time(up[1m]) > 1) == 2 and on() spinguard_sampler_up == 1 and on() count(spinguard_workers) > 0`))
		return len(data.Result) == 1
	})
	n.fall(t)
	n.checkDashboards(t, base)
	n.checkRules(t, base)
	n.checkAlerts(t, base)
	for _, target := range []string{n.agent + "/metrics", n.proxy + "/admin/metrics"} {
		c := exec.Command(promtool, "check", "metrics")
		c.Stdin = strings.NewReader(string(get("http://" + target)))
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics of %s: %v\n%s", target, err, out)
		}
	}
}

func startPrometheus(t *testing.T, program string, n *night) string {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("../prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- {job_name: spinguard, static_configs: [{targets: [%q]}]}
- {job_name: balancer, metrics_path: /admin/metrics, static_configs: [{targets: [%q]}]}
`, rules, n.agent, n.proxy)
	if err := os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freePort(t)
	run(t, program, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+addr, "--log.level=warn")
	return "http://" + addr
}

// values are what a reader would have chosen in the variables of a dashboard.
func (n *night) values(b board) *strings.Replacer {
	job, instance := "spinguard", n.agent
	if b.uid == "spinguard-balancer" {
		job, instance = "balancer", ".*"
	}
	return strings.NewReplacer("$job", job, "$instance", instance, "${instance}", instance, "$proxy", n.name, "${proxy}", n.name, "$upstream", ".*",
		"$__rate_interval", "1m", "$__range", "5m", "${__to:date:seconds}", "9999999999",
		"${__field.labels.instance}", instance, "${__field.labels.proxy}", n.name)
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// checkDashboards walks the files that operators import.
func (n *night) checkDashboards(t *testing.T, base string) {
	t.Helper()
	for _, b := range boards {
		file, err := os.ReadFile(b.uid + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var d any
		if err := json.Unmarshal(file, &d); err != nil {
			t.Fatal(err)
		}
		values := n.values(b)
		queries := texts(d, "expr")
		if len(queries) < 12 {
			t.Errorf("%s: %d queries found; is the search broken?", b.uid, len(queries))
		}
		for _, q := range queries {
			hasData(t, base, b.uid, values.Replace(q))
		}
		for _, q := range texts(d, "query") {
			if m := labelValues.FindStringSubmatch(values.Replace(q)); m != nil {
				if data, text := ask(base, "label/"+m[2]+"/values?match[]="+url.QueryEscape(m[1])); len(data.Names) == 0 {
					t.Errorf("%s: nothing to choose from in %s: %s", b.uid, q, text)
				}
			}
		}
		for _, link := range texts(d, "url") {
			if link = values.Replace(link); strings.HasPrefix(link, "http://") {
				n.leads(t, b.uid, link)
			} else if uid, _, _ := strings.Cut(strings.TrimPrefix(link, "/d/"), "?"); !slices.ContainsFunc(boards, func(b board) bool { return b.uid == uid }) {
				t.Errorf("%s: link to %s", b.uid, link)
			}
		}
	}
}

// texts returns the strings of that name, anywhere in a JSON value.
func texts(v any, name string) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if s, ok := value.(string); ok && key == name && s != "" {
				list = append(list, s)
			}
			list = append(list, texts(value, name)...)
		}
	case []any:
		for _, value := range v {
			list = append(list, texts(value, name)...)
		}
	}
	slices.Sort(list)
	return list
}

// leads checks that a link ends at the incident, or at the list of incidents.
func (n *night) leads(t *testing.T, where, link string) {
	t.Helper()
	r, err := http.Get(link)
	if err != nil {
		t.Errorf("%s: link %s: %v", where, link, err)
		return
	}
	_ = r.Body.Close()
	end := r.Request.URL.Path // after the redirects
	of := slices.IndexFunc(n.incidents(), func(s incident.Summary) bool { return strings.HasPrefix(end, "/incidents/"+s.ID+"/") })
	if r.StatusCode != 200 || end != "/incidents" && of < 0 {
		t.Errorf("%s: link %s: %s at %s", where, link, r.Status, end)
	}
}

var recorded = regexp.MustCompile(`(?m)^ *- record: (\S+)`)

// checkRules checks that each recording rule has data and no rule has an error.
func (n *night) checkRules(t *testing.T, base string) {
	t.Helper()
	file, err := os.ReadFile("../prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := recorded.FindAllStringSubmatch(string(file), -1)
	if len(names) < 20 {
		t.Errorf("%d recording rules found", len(names))
	}
	for _, m := range names {
		hasData(t, base, "rules.yml", m[1])
	}
	data, text := ask(base, "rules")
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" || r.LastError != "" {
				t.Errorf("rule %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if len(data.Groups) < 5 {
		t.Errorf("rules: %s", text)
	}
}

// checkAlerts checks that the night raised the alert that tells of it, and
// that its link leads to the incident.
func (n *night) checkAlerts(t *testing.T, base string) {
	t.Helper()
	want := map[string]bool{"SpinguardIncident": true, "SpinguardUpdatesRefused": true}
	var last string
	defer func() {
		if len(want) > 0 {
			t.Logf("these do not: %v; %s", want, last)
		}
	}()
	eventually(t, "the alerts of the night fire", func() bool {
		data, text := ask(base, "alerts")
		last = text
		for _, a := range data.Alerts {
			if name := a.Labels["alertname"]; want[name] && a.State != "inactive" {
				delete(want, name)
				if name == "SpinguardIncident" {
					n.leads(t, name, a.Annotations["link"])
				}
			}
		}
		return len(want) == 0
	})
}

// hasData waits until a query returns a number.
func hasData(t *testing.T, base, where, query string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s: %s has data", where, query), func() bool {
		data, _ := ask(base, "query?query="+url.QueryEscape(query))
		return slices.ContainsFunc(data.Result, func(s series) bool { return len(s.Value) == 2 && s.Value[1] != "NaN" })
	})
}

type series struct{ Value []any }

// answer is what Prometheus says, whatever was asked.
type answer struct {
	Result []series
	Names  []string
	Alerts []struct {
		State               string
		Labels, Annotations map[string]string
	}
	Groups []struct {
		Rules []struct{ Name, Health, LastError string }
	}
}

// ask returns the data of an answer, and its text for messages.
func ask(base, path string) (answer, string) {
	body := get(base + "/api/v1/" + path)
	var all struct{ Data json.RawMessage }
	var a answer
	if json.Unmarshal(body, &all) == nil && json.Unmarshal(all.Data, &a) != nil {
		_ = json.Unmarshal(all.Data, &a.Names) // the values of a label are a list
	}
	return a, string(body)
}

// get returns a page, or what went wrong instead.
func get(address string) []byte {
	r, err := http.Get(address)
	if err != nil {
		return []byte(err.Error())
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return []byte(err.Error())
	}
	return body
}
