package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/spinguard/spinguard/web/api"
	"github.com/spinguard/spinguard/web/client"
)

// redraw is how often the live view is drawn.
const redraw = 500 * time.Millisecond

// socketFlag adds the option that names another agent than the default one.
func (f flags) socketFlag() *string {
	def := f.env.getenv("SPINGUARD_SOCKET")
	if def == "" {
		def = client.DefaultSocket
	}
	return f.String("socket", def, "talk to the agent behind this unix `SOCKET`")
}

func runWorkers(e env, args []string) error {
	f := newFlags(e, "workers", "[--watch] [--json]",
		"Lists the watched workers: proxy, pid, CPU, stall, verdict, request, upstream.",
		"  spinguard workers\n  spinguard workers --watch\n  spinguard workers --json | jq '.[] | select(.verdict != \"healthy\")'\n")
	watch := f.Bool("watch", false, "refresh in place until interrupted")
	asJSON := f.Bool("json", false, "print JSON")
	socket := f.socketFlag()
	if _, err := f.parse(args, 0, 0); err != nil {
		return err
	}
	c := client.New(*socket)
	defer c.Close()
	if *watch && e.terminal && !*asJSON {
		return watchWorkers(e, c)
	}
	list, err := c.Workers(e.ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(e.stdout, list)
	}
	printWorkers(e, e.stdout, list, 0)
	return nil
}

// watchWorkers draws the list again and again, in place.
func watchWorkers(e env, c *client.Client) error {
	fmt.Fprint(e.stdout, "\x1b[?25l")
	defer fmt.Fprint(e.stdout, "\x1b[?25h")
	for {
		width, height, err := term.GetSize(int(os.Stdout.Fd()))
		if err != nil {
			width, height = 80, 24
		}
		var page bytes.Buffer
		drawWorkers(e, c, &page, width)
		lines := strings.Split(strings.TrimRight(page.String(), "\n"), "\n")
		if room := max(height-2, 1); len(lines) > room+1 {
			lines = append(lines[:room], fmt.Sprintf("... %d more lines", len(lines)-room))
		}
		fmt.Fprint(e.stdout, "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\r\n\x1b[J")
		select {
		case <-e.ctx.Done():
			return nil
		case <-time.After(redraw):
		}
	}
}

func drawWorkers(e env, c *client.Client, page *bytes.Buffer, width int) {
	ctx, cancel := context.WithTimeout(e.ctx, 2*time.Second)
	defer cancel()
	status, err := c.Status(ctx)
	if err == nil {
		var list []api.WorkerStatus
		if list, err = c.Workers(ctx); err == nil {
			head := fmt.Sprintf("%s  %s  mode %s  %d samples  agent %.1f s CPU, %d MB  Ctrl-C ends", time.Now().Format(time.TimeOnly), printable(status.Node),
				status.Mode, status.Samples, status.CPUSeconds, status.ResidentBytes>>20)
			fmt.Fprintf(page, "%s\n\n", cut(head, width))
			printWorkers(e, page, worstFirst(list), width)
			if top, err := c.Classes(ctx); err == nil {
				printClasses(e, page, top, width)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(page, e.paint(red, cut(err.Error(), width)))
	}
}

// worstFirst puts the workers that are not healthy at the top: a small terminal
// must not hide the stuck one behind a hundred that are well.
func worstFirst(list []api.WorkerStatus) []api.WorkerStatus {
	rank := func(w api.WorkerStatus) int {
		switch w.Verdict {
		case "healthy":
			return 2
		case "saturated", "suspect":
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b api.WorkerStatus) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// printWorkers prints one line a worker, cut to the width; 0: not cut.
func printWorkers(e env, w io.Writer, list []api.WorkerStatus, width int) {
	rows := [][]string{{"PROXY", "PID", "CPU", "STALL", "VERDICT", "REQUEST", "UPSTREAM"}}
	room := 28 // for a proxy's name; of a narrow terminal the verdict gets its share first
	if width > 0 {
		room = min(room, max(width-32, 8))
	}
	for _, s := range list {
		upstream := s.Upstream
		if s.Version != "" {
			upstream += " version " + s.Version
		}
		rows = append(rows, []string{
			cutFront(s.Proxy, room), fmt.Sprint(s.PID), fmt.Sprintf("%3.0f%%", 100*s.CPUShare), stall(s.StallMS), s.Verdict, dash(s.Request), dash(upstream),
		})
	}
	var text bytes.Buffer
	table(&text, rows)
	for i, line := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		if width > 0 {
			line = cut(line, width)
		}
		switch {
		case i == 0:
			line = e.paint(bold, line)
		case list[i-1].Verdict != "healthy":
			line = e.paint(verdictColour(list[i-1].Verdict), line)
		}
		fmt.Fprintln(w, line)
	}
	if len(list) == 0 {
		text := "no proxy is running on this host, or none that the agent may watch"
		if width > 0 {
			text = cut(text, width)
		}
		fmt.Fprintln(w, text)
	}
}

func stall(ms float64) string {
	if ms < 1 {
		return "-"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
