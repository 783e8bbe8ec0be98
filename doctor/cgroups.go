package doctor

import (
	"fmt"
	"strings"

	"github.com/spinguard/spinguard/proxy"
)

const unthrottled = "a worker that its quota holds back, or that is frozen, stands still like a stuck one; without this the agent can't tell, and may blame it"

// cgroups says which hierarchies are mounted where the agent runs.
func (h Host) cgroups() (Finding, bool) {
	v, err := proxy.ViewCgroups(h.Root, 0)
	if err != nil {
		return Finding{}, false
	}
	f := Finding{Check: "cgroups", Level: OK, Found: strings.Join(v.Hierarchies, ", ")}
	if len(v.Hierarchies) == 0 {
		f.Level, f.Found, f.Why, f.Remedy = Warn, "none mounted", unthrottled, "mount /sys/fs/cgroup; in a container, hand it in read-only"
	}
	return f, true
}

// throttling says whether the agent sees that a worker is held back.
func (h Host) throttling(name string, pid int) []Finding {
	v, err := proxy.ViewCgroups(h.Root, pid)
	if err != nil {
		return nil // it has ended
	}
	f := Finding{Check: name + " cgroups", Level: OK, Found: fmt.Sprintf("throttling of its workers can be read in %d levels", v.Throttling)}
	if v.Throttling == 0 {
		f.Level, f.Why = Warn, unthrottled
		f.Remedy = "let the agent see the cgroups of the host: mount /sys/fs/cgroup of the host, read-only, with its cpu hierarchy, and use the host's cgroup namespace"
	}
	return []Finding{f}
}
