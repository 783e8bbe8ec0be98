package drill

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (s *series) paint(code, text string) string {
	if !s.stdio.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

const (
	bold, red, green, yellow, dim = "1", "31", "32", "33", "2"
)

func (s *series) title(sc *Scenario, n int) {
	text := "drill " + sc.Case.Name
	if n > 0 {
		text += fmt.Sprintf(", run %d", n+1)
	}
	fmt.Fprintln(s.stdio.Out, s.paint(bold, text))
	if about := strings.TrimSpace(sc.Case.About); about != "" {
		fmt.Fprintln(s.stdio.Out, s.paint(dim, wrap(about, 100, "  ")))
	}
}

var colours = map[string]string{
	"trigger": yellow, "suspected": yellow, "confirmed": red, "quarantined": bold, "evicted": bold, "recovered": green,
}

// line prints progress as it happens.
func (s *series) line(l Line) {
	if l.Kind == "end" {
		return // the table tells it
	}
	at := strings.Repeat(" ", 10)
	if l.MS >= 0 {
		at = fmt.Sprintf("%7d ms", l.MS)
	}
	kind := fmt.Sprintf("%-12s", l.Kind)
	if c := colours[l.Kind]; c != "" {
		kind = s.paint(c, kind)
	}
	fmt.Fprintf(s.stdio.Out, "%s  %s %s\n", at, kind, l.Text)
}

// table prints the result for people.
func (s *series) table(r *Result) {
	p := func(name, format string, args ...any) {
		fmt.Fprintf(s.stdio.Out, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	word := s.paint(green, "passed")
	if !r.Passed {
		word = s.paint(red, "FAILED")
	}
	fmt.Fprintf(s.stdio.Out, "\n%s %s  (%s, %.1f s)\n", r.Name, word, r.Mode, r.Seconds)
	p("verdict", "%s  %s", r.Verdict, r.Reason)
	p("timeline", "%s", r.Timeline.text())
	s.evidence(r, p)
	p("workers", "%d stuck, %d evicted", r.WorkersStuck, r.WorkersEvicted)
	p("probes", "%d sent, %d ok, %d failed, %d of them after the recovery", r.Probe.Sent, r.Probe.OK, r.Probe.Failed,
		r.Probe.FailedAfterRecovery)
	p("agent", "%.2f s of CPU, %.1f MiB, %d samples, %d lost", r.Agent.CPUSeconds, float64(r.Agent.MaxRSSBytes)/(1<<20),
		r.Agent.Samples, r.Agent.LostSamples)
	for _, b := range r.Broken {
		p("it hurts", "%s", b)
	}
	for _, f := range r.Failures {
		p("failure", "%s", s.paint(red, f))
	}
	if !r.Passed {
		s.lastLines(r)
	}
	where := r.Out
	if report := filepath.Join(r.Incident, "report.html"); r.Incident != "" && exists(report) {
		where = report
	}
	p("report", "%s", where)
	fmt.Fprintln(s.stdio.Out)
}

// lastLines prints the end of what the agent said, for those who see nothing
// but this output.
func (s *series) lastLines(r *Result) {
	data, err := readBounded(r.log, 6000)
	if err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, l := range lines[max(0, len(lines)-12):] {
		fmt.Fprintf(s.stdio.Out, "  %-12s %s\n", "agent said", l[:min(len(l), 400)])
	}
}

func (s *series) evidence(r *Result, p func(name, format string, args ...any)) {
	e := &r.Evidence
	if e.Request != "" {
		p("request", "%s", e.Request)
	}
	if e.Upstream != "" {
		p("upstream", "%s version %s  peer %s", e.Upstream, e.Version, orDash(e.Peer))
	}
	if len(e.Frames) > 0 {
		p("frames", "%s", hotPath(e.Frames))
	}
	for _, v := range e.Values {
		p("value", "%s = %s", v.Name, v.Text)
	}
}

func (s *series) summary(list []Result) {
	failed := 0
	for i := range list {
		r := &list[i]
		word := s.paint(green, "passed")
		if !r.Passed {
			word, failed = s.paint(red, "FAILED"), failed+1
		}
		fmt.Fprintf(s.stdio.Out, "%-24s %s %-12s %s\n", r.Name, word, r.Verdict, r.Timeline.text())
	}
	incidents, evicted, rss := 0, 0, int64(0)
	for i := range list {
		incidents += len(list[i].Incidents)
		evicted += list[i].WorkersEvicted
		rss = max(rss, list[i].Agent.MaxRSSBytes)
	}
	fmt.Fprintf(s.stdio.Out, "%d of %d passed; %d incidents, %d workers evicted; agent %d MB at most\n", len(list)-failed, len(list), incidents, evicted, rss>>20)
}

// text returns "suspected 80, confirmed 310 ms", the steps that happened.
func (t Timeline) text() string {
	var parts []string
	for _, s := range []struct {
		name string
		ms   *int64
	}{
		{"suspected", t.Suspected}, {"confirmed", t.Confirmed}, {"captured", t.Captured},
		{"quarantined", t.Quarantined}, {"evicted", t.Evicted}, {"recovered", t.Recovered},
	} {
		if s.ms != nil {
			parts = append(parts, fmt.Sprintf("%s %d", s.name, *s.ms))
		}
	}
	if len(parts) == 0 {
		return "nothing happened"
	}
	return strings.Join(parts, ", ") + " ms"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// wrap breaks text between words so that lines stay within width.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	col := 0
	for _, w := range strings.Fields(text) {
		if col > 0 && col+1+len(w) > width {
			b.WriteByte('\n')
			col = 0
		}
		if col == 0 {
			b.WriteString(indent)
			col = len(indent)
		} else {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	return b.String()
}
