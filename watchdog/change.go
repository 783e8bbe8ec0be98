package watchdog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/incident"
)

// changed tells what the version changed that the worker hangs on: the worker
// left it in its memory before it took the version into use.
func (a *Agent) changed(e *episode, w *worker) {
	ev := &e.inc.Evidence
	version, err := strconv.ParseUint(ev.Version, 10, 64)
	if err != nil || w.slot == 0 {
		return
	}
	c, err := w.files.ReadChange(w.process.Memory(), w.slot, ev.Upstream, version)
	if err != nil || ev.Digest != "" && c.Digest != ev.Digest {
		return
	}
	e.inc.Change = changeOf(c)
	e.noteOnce(a.now(e), changeNote(c))
}

func changeNote(c balancer.Change) string {
	by := ""
	if c.By != "" {
		by = " by " + c.By
	}
	return fmt.Sprintf("version %d of %s was published%s at %s; it changed: %s", c.To, c.Upstream, by,
		c.At.UTC().Format("2006-01-02 15:04:05 UTC"), strings.Join(c.Lines, "; "))
}

// changeOf writes a change as a unified difference.
func changeOf(c balancer.Change) *incident.Change {
	out := &incident.Change{Upstream: c.Upstream, To: strconv.FormatUint(c.To, 10)}
	if c.From > 0 {
		out.From = strconv.FormatUint(c.From, 10)
	}
	var b strings.Builder
	for _, line := range c.Lines {
		address, weights, isWeight := strings.Cut(line, " weight ")
		was, is, both := strings.Cut(weights, " -> ")
		switch {
		case isWeight && both:
			fmt.Fprintf(&b, "-%s weight %s\n+%s weight %s\n", address, was, address, is)
		case strings.Contains(line, " added, "):
			b.WriteString("+" + line + "\n")
		case strings.Contains(line, " removed, "):
			b.WriteString("-" + line + "\n")
		default:
			b.WriteString(" " + line + "\n")
		}
	}
	out.Text = b.String()
	return out
}
