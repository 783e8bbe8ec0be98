package drill

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// problem is what is wrong with one key of a case.
type problem struct{ key, text string }

// verdicts holds the verdicts that each kind of case may expect.
var verdicts = map[string][]string{
	"A": {"runaway"}, "B": {"spinning"}, "C": {"blocked"},
	"D": {"saturated", "healthy"}, "V": {"lock_victim"}, "F": {"healthy"},
}

// check returns the first problem of a case, or nil.
func check(c *Case) *problem {
	for _, rule := range []func(*Case) *problem{checkProxy, checkTraffic, checkTrigger, checkHelp, checkExpect} {
		if p := rule(c); p != nil {
			return p
		}
	}
	return nil
}

func checkProxy(c *Case) *problem {
	switch {
	case c.Name == "" || c.Name != filepath.Base(c.Name) || strings.HasPrefix(c.Name, "."):
		return &problem{"name", fmt.Sprintf("%q is not the name of a folder", c.Name)}
	case verdicts[c.Kind] == nil:
		return &problem{"kind", fmt.Sprintf("%q is not one of A, B, C, D, V, F", c.Kind)}
	case c.Proxy != "nginx" && c.Proxy != "haproxy":
		return &problem{"proxy", fmt.Sprintf("%q is neither nginx nor haproxy", c.Proxy)}
	case c.Workers < 1 || c.Workers > 512:
		return &problem{"workers", fmt.Sprintf("%d is not between 1 and 512", c.Workers)}
	case c.Config == "" || c.Config != filepath.Base(c.Config):
		return &problem{"config", fmt.Sprintf("%q is not a file name in the case folder", c.Config)}
	}
	return nil
}

func checkTraffic(c *Case) *problem {
	if p := checkRequest("healthy", &c.Healthy); p != nil {
		return p
	}
	if c.Healed != nil {
		if p := checkRequest("healed", c.Healed); p != nil {
			return p
		}
	}
	if l := c.Load; l != nil {
		switch {
		case !pathLike(l.Path):
			return &problem{"load.path", fmt.Sprintf("%q does not begin with /", l.Path)}
		case l.Concurrency < 1 || l.Concurrency > 4096:
			return &problem{"load.concurrency", fmt.Sprintf("%d is not between 1 and 4096", l.Concurrency)}
		case l.Seconds < 1 || l.Seconds > 3600:
			return &problem{"load.seconds", fmt.Sprintf("%d is not between 1 and 3600", l.Seconds)}
		}
	}
	return nil
}

func checkTrigger(c *Case) *problem {
	for i := range c.Trigger {
		s, key := &c.Trigger[i], fmt.Sprintf("trigger.%d", i+1)
		if p := checkRequest(key, &s.Request); p != nil {
			return p
		}
		for _, n := range []struct {
			key      string
			val, max int
		}{
			{"body_repeat", s.BodyRepeat, 1 << 28}, {"count", s.Count, 100_000},
			{"parallel", s.Parallel, 4096}, {"timeout_ms", s.TimeoutMS, 600_000},
		} {
			if n.val < 0 || n.val > n.max {
				return &problem{key + "." + n.key, fmt.Sprintf("%d is not between 0 and %d", n.val, n.max)}
			}
		}
		if size := len(s.Body) * max(1, s.BodyRepeat); size > 1<<28 {
			return &problem{key + ".body_repeat", fmt.Sprintf("body of %d bytes, more than 256 MiB", size)}
		}
	}
	return nil
}

func checkRequest(key string, r *Request) *problem {
	if !pathLike(r.Path) {
		return &problem{key + ".path", fmt.Sprintf("%q does not begin with /", r.Path)}
	}
	if strings.ContainsAny(r.Method+r.Path, "\r\n") {
		return &problem{key, "line end in method or path"}
	}
	return nil
}

// A template may stand for the whole path, so one is let through.
func pathLike(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "{{") || s == "*" || strings.Contains(s, "://")
}

func checkHelp(c *Case) *problem {
	if q := c.Quarantine; q != nil && (q.File == "" || q.Line == "") {
		return &problem{"quarantine", "file and line are both needed"}
	}
	if u := c.Culprit; u != nil && (u.Frame == "" || u.Upstream == "" && u.Version == "") {
		return &problem{"culprit", "frame and at least one of upstream and version are needed"}
	}
	if a := c.Agent.ActAfter; a < 0 || a > time.Hour {
		return &problem{"agent.act_after", fmt.Sprintf("%v is not between 0s and 1h", a)}
	}
	return nil
}

func checkExpect(c *Case) *problem {
	e := &c.Expect
	switch {
	case !slices.Contains(verdicts[c.Kind], e.Verdict):
		return &problem{"expect.verdict", fmt.Sprintf("%q does not fit kind %s (%s)", e.Verdict, c.Kind,
			strings.Join(verdicts[c.Kind], ", "))}
	case e.WithinMS <= 0 || e.WithinMS > 3_600_000:
		return &problem{"expect.within_ms", fmt.Sprintf("%d is not between 1 and 3600000", e.WithinMS)}
	case e.Heal != healEvict && e.Heal != healQuarantine && e.Heal != healNone:
		return &problem{"expect.heal", fmt.Sprintf("%q is not one of evict, quarantine+evict, none", e.Heal)}
	case e.MustNotAct != c.calm():
		return &problem{"expect.must_not_act", fmt.Sprintf("must be %v for kind %s", c.calm(), c.Kind)}
	case e.WorkersStuck < 0 || e.WorkersStuck > c.Workers:
		return &problem{"expect.workers_stuck", fmt.Sprintf("%d of %d workers", e.WorkersStuck, c.Workers)}
	case e.Victims < 0 || e.Victims > e.WorkersStuck:
		return &problem{"expect.victims", fmt.Sprintf("%d of %d stuck workers", e.Victims, e.WorkersStuck)}
	}
	return nil
}
