package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/client"
)

func runIncidents(e env, args []string) error {
	f := newFlags(e, "incidents", "[show ID | export ID] [--json]",
		"Lists the incidents, newest first; tells one, story first; or packs one into a file for a ticket.",
		"  spinguard incidents\n  spinguard incidents show 20261130T015749.123Z-a1b2c3\n  spinguard incidents export 20261130T015749.123Z-a1b2c3 -o incident.tar.gz\n")
	asJSON := f.Bool("json", false, "print JSON")
	limit := f.Int("limit", 50, "list at most `N`")
	out := f.String("o", "", "export to this `FILE` (default ID.tar.gz)")
	socket := f.socketFlag()
	rest, err := f.parse(args, 0, 2)
	if err != nil {
		return err
	}
	c := client.New(*socket)
	defer c.Close()
	switch {
	case len(rest) == 0:
		return listIncidents(e, c, *limit, *asJSON)
	case len(rest) == 2 && rest[0] == "show":
		return showIncident(e, c, rest[1], *asJSON)
	case len(rest) == 2 && rest[0] == "export":
		return exportIncident(e, c, rest[1], *out)
	}
	return fmt.Errorf("%w of incidents: %q; see spinguard incidents --help", errUsage, rest)
}

func listIncidents(e env, c *client.Client, limit int, asJSON bool) error {
	list, err := c.Incidents(e.ctx, incident.Filter{Limit: limit})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(e.stdout, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(e.stdout, "no incidents")
		return nil
	}
	// The id tells when, too, so what matters most fits into 80 columns.
	rows := [][]string{{"ID", "VERDICT", "OUTCOME", "PROXY", "STUCK", "EVICTED", "BEGAN", "REQUEST"}}
	for _, s := range list {
		outcome := string(s.Outcome)
		if s.Ended == nil {
			outcome = "open"
		}
		rows = append(rows, []string{s.ID, s.Verdict, outcome, s.Proxy,
			fmt.Sprint(s.WorkersStuck), fmt.Sprint(s.WorkersEvicted), s.Began.Local().Format(time.DateTime), dash(s.Request)})
	}
	var text bytes.Buffer
	table(&text, rows)
	return e.show(e.fit(text.String()))
}

func showIncident(e env, c *client.Client, id string, asJSON bool) error {
	inc, err := c.Incident(e.ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(e.stdout, inc)
	}
	var text bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&text, format, args...) }
	width := e.width()
	p("%s\n\n", e.paint(bold, wrap(printable(inc.Story), width, 0)))
	for _, step := range inc.Timeline.Steps() {
		p("  %7d ms  %s\n", step.MS, step.Name)
	}
	judged := wrap(fmt.Sprintf("%s (%s)", printable(inc.Verdict), printable(inc.Reason)), width, 2)
	p("\n%s%s\n", e.paint(verdictColour(inc.Verdict), printable(inc.Verdict)), judged[len(printable(inc.Verdict)):])
	ev := inc.Evidence
	rows := [][]string{{"request", dash(ev.Request)}, {"upstream", dash(ev.Upstream)}, {"version", dash(ev.Version)}, {"peer", dash(ev.Peer)}}
	for _, v := range ev.Values {
		rows = append(rows, []string{v.Name, v.Text})
	}
	var values bytes.Buffer
	second := table(&values, rows)
	p("%s\n", wrapLines(values.String(), width, second))
	printFrames(&text, ev, width)
	for _, a := range inc.Actions {
		p("\n%s", wrap(fmt.Sprintf("  %7d ms  %s %s: %s (%s)", a.AtMS, a.Kind, printable(a.Target), a.Result, printable(a.Text)), width, 14))
	}
	p("\n")
	return e.show(text.String())
}

// printFrames prints the stack, leaf first; a function that calls itself over
// and over takes one line.
func printFrames(w io.Writer, ev incident.Evidence, width int) {
	for i := 0; i < len(ev.Frames); {
		n := 1
		for i+n < len(ev.Frames) && ev.Frames[i+n] == ev.Frames[i] {
			n++
		}
		mark, times := "  ", ""
		if ev.Hot >= i && ev.Hot < i+n {
			mark = "> "
		}
		if n > 1 {
			times = fmt.Sprintf("  (%d times)", n)
		}
		fmt.Fprintln(w, wrap(mark+printable(ev.Frames[i])+times, width, 4))
		i += n
	}
}

func exportIncident(e env, c *client.Client, id, out string) error {
	if err := incident.CheckID(id); err != nil {
		return err
	}
	if out == "" {
		out = id + ".tar.gz"
	}
	if there, err := os.Stat(out); err == nil && !there.Mode().IsRegular() {
		return exportInto(e, c, id, out) // a pipe or a device must not be replaced by a file
	}
	tmp := out + ".part"
	w, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Export(e.ctx, id, w), w.Close()); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, out); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "wrote %s\n", out)
	return nil
}

// exportInto writes an incident to what is there already, such as /dev/stdout.
func exportInto(e env, c *client.Client, id, out string) error {
	w, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(c.Export(e.ctx, id, w), w.Close())
}
