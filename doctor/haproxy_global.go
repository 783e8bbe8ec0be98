package doctor

import (
	"fmt"
	"slices"

	"github.com/spinguard/spinguard/doctor/haproxyconf"
)

// reserve is about how many handles HAProxy takes besides two a connection:
// listeners, checks, pollers.
const reserve = 100

// global looks at what concerns the whole process.
func (c *haproxyCheck) global(g haproxyconf.Section) {
	c.maxconn(g)
	c.statsSocket(g)
	if l, ok := g.Get("nbthread"); ok && c.limits.CPUs > 1 && (numberOf(l) == 1 || numberOf(l) > c.limits.CPUs) {
		why, remedy := "with one thread, whatever holds it up holds up everything", "drop nbthread: HAProxy then starts one thread per CPU"
		if numberOf(l) > 1 {
			why = "threads that share a CPU wait for each other, spinning on their locks"
		}
		c.warn("nbthread", fmt.Sprintf("%d on %d CPUs (%s)", numberOf(l), c.limits.CPUs, where(l)), why, remedy)
	}
	if _, ok := g.Get("hard-stop-after"); !ok {
		c.warn("hard-stop-after", "not set", "after a reload the old process stays as long as one connection does, with the old configuration and its memory", "hard-stop-after 60s in global")
	}
}

func (c *haproxyCheck) maxconn(g haproxyconf.Section) {
	handles := c.limits.OpenFiles
	l, ok := g.Get("maxconn")
	switch most := numberOf(l); {
	case handles == 0:
	case ok && most > 0 && handles < 2*most+reserve:
		c.warn("maxconn", fmt.Sprintf("%d against %d file handles (%s)", most, handles, where(l)), "a connection takes two handles: at the limit accept and connect fail, and servers flap",
			fmt.Sprintf("LimitNOFILE=%d in the unit, or a maxconn of %d", 2*most+1024, max(handles-reserve, 2)/2))
	case !ok && handles < 4096:
		c.warn("maxconn", fmt.Sprintf("not set, and %d file handles", handles), fmt.Sprintf("HAProxy then takes no more than about %d connections, and lets the rest wait", max(handles-reserve, 2)/2),
			"maxconn in global, with LimitNOFILE= of twice as much in the unit")
	}
}

// statsSocket says whether servers can be taken out.
func (c *haproxyCheck) statsSocket(g haproxyconf.Section) {
	sockets := slices.Clone(g.All("stats"))
	sockets = slices.DeleteFunc(sockets, func(l haproxyconf.Line) bool { return len(l.Words) < 3 || l.Words[1] != "socket" })
	const why = "the agent sees and explains stuck threads, but can't take a server out of its backend"
	if len(sockets) == 0 {
		c.warn("stats socket", "none", why, "stats socket /run/haproxy/admin.sock mode 660 level admin")
		return
	}
	for _, l := range sockets {
		if i := slices.Index(l.Words, "level"); i >= 0 && i+1 < len(l.Words) && l.Words[i+1] == "admin" {
			return
		}
	}
	c.warn("stats socket", "none with level admin ("+where(sockets[0])+")", why, "level admin")
}
