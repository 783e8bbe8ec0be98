package drill

import (
	"fmt"
	"slices"
	"strings"
)

// casePrefix chooses an embedded case where a scenario has the same name.
const casePrefix = "case:"

// Names returns the names that Find knows, sorted.
func Names() []string {
	var out []string
	for n := range owns {
		out = append(out, n)
	}
	for _, n := range caseNames() {
		if _, taken := owns[n]; taken {
			n = casePrefix + n
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// expand replaces the names of groups by those of their members.
func expand(names []string) []string {
	var out []string
	for _, n := range names {
		switch n {
		case "cases":
			for _, c := range caseNames() {
				out = append(out, casePrefix+c)
			}
		case "negatives":
			out = append(out, negatives()...)
		case "faults":
			out = append(out, faults()...)
		case "rails", "nights":
			prefix := strings.TrimSuffix(n, "s") + "-"
			for _, r := range Names() {
				if strings.HasPrefix(r, prefix) {
					out = append(out, r)
				}
			}
		default:
			out = append(out, n)
		}
	}
	return out
}

// builtIn returns a scenario of the project, or nil for any other name.
func builtIn(name string) (*Scenario, error) {
	if o, ok := owns[name]; ok {
		sc, err := ownScenario(name, o)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", name, err)
		}
		return sc, nil
	}
	if n := strings.TrimPrefix(name, casePrefix); slices.Contains(caseNames(), n) {
		return embeddedCase(casesDir + "/" + n)
	}
	return nil, nil
}

// list describes every scenario, one a line.
func list() string {
	var b strings.Builder
	for _, n := range Names() {
		if o, ok := owns[n]; ok {
			fmt.Fprintf(&b, "  %-20s %s\n", n, o.about)
		}
	}
	var cases []string
	for _, n := range Names() {
		if _, ok := owns[n]; !ok {
			cases = append(cases, n)
		}
	}
	b.WriteString("Cases:\n")
	b.WriteString(wrap(strings.Join(cases, " "), 90, "  "))
	b.WriteByte('\n')
	return b.String()
}
