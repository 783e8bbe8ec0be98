package proxy

import (
	"os"
	"strings"
)

// cgroupMount is a mounted hierarchy. Controllers of v1 are named; v2 has the
// one name "".
type cgroupMount struct {
	point, root string
	controllers []string
}

func cgroupMounts() []cgroupMount {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(b))
}

// parseMounts reads mountinfo: "id parent dev root point options ... - type
// source superoptions". Each hierarchy is taken once.
func parseMounts(text string) []cgroupMount {
	var mounts []cgroupMount
	seen := make(map[string]bool)
	for _, line := range strings.Split(text, "\n") {
		head, tail, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(head), strings.Fields(tail)
		if !ok || len(f) < 6 || len(g) < 3 {
			continue
		}
		m := cgroupMount{root: unescapeMount(f[3]), point: unescapeMount(f[4])}
		switch g[0] {
		case "cgroup":
			m.controllers = strings.Split(g[2], ",")
		case "cgroup2":
			m.controllers = []string{""}
		default:
			continue
		}
		if key := g[0] + " " + g[2]; !seen[key] {
			seen[key] = true
			mounts = append(mounts, m)
		}
	}
	return mounts
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unescapeMount(s string) string { return mountEscapes.Replace(s) }
