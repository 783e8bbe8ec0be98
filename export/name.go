package export

import (
	"strings"

	"github.com/spinguard/spinguard/incident"
)

// name is the application's name with its labels, as /ingest reads it:
// app{key=value,key=value}, without quotes.
func name(app string, inc *incident.Incident) string {
	labels := []struct{ key, value string }{
		{"incident", inc.ID}, {"kind", inc.Kind}, {"node", inc.Origin}, {"proxy", inc.Proxy}, {"upstream", inc.Evidence.Upstream}, {"verdict", inc.Verdict},
	}
	var parts []string
	for _, l := range labels {
		if l.value != "" {
			parts = append(parts, l.key+"="+safe(l.value))
		}
	}
	return app + "{" + strings.Join(parts, ",") + "}"
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
