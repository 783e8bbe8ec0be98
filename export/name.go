package export

import (
	"maps"
	"strings"

	"github.com/spinguard/spinguard/incident"
)

// name is the application's name with its labels, as /ingest reads it:
// app{key=value,key=value}, without quotes.
func name(app string, inc *incident.Incident) string {
	var parts []string
	given := labels(inc)
	for _, key := range sortedKeys(given) {
		parts = append(parts, key+"="+safe(given[key]))
	}
	return app + "{" + strings.Join(parts, ",") + "}"
}

// labels say what a profile is of.
func labels(inc *incident.Incident) map[string]string {
	m := map[string]string{
		"incident": inc.ID, "kind": inc.Kind, "node": inc.Origin, "proxy": inc.Proxy, "upstream": inc.Evidence.Upstream, "verdict": inc.Verdict,
	}
	maps.DeleteFunc(m, func(_, v string) bool { return v == "" })
	for k, v := range m {
		m[k] = v[:min(len(v), 400)]
	}
	return m
}

// safe replaces what would end a label's value, and bounds it: names of
// upstreams come from the memory of a proxy.
func safe(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-/:", r):
			return r
		}
		return '_'
	}, s[:min(len(s), 400)])
	return s[:min(len(s), 100)]
}
