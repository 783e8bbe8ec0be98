package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spinguard/spinguard/web/api"
)

// classesShown is how many classes of requests the live view lists.
const classesShown = 10

// printClasses prints the classes of requests that used the most CPU time, one
// line each, cut to the width; 0: not cut.
func printClasses(e env, w io.Writer, list []api.Class, width int) {
	if len(list) == 0 {
		return
	}
	rows := [][]string{{"CPU", "UPSTREAM", "ROUTE", "PHASE", "OVER BUDGET", "PROXY"}}
	for _, c := range list[:min(classesShown, len(list))] {
		over := "-"
		if c.OverBudget > 0 {
			over = fmt.Sprint(c.OverBudget)
		}
		rows = append(rows, []string{fmt.Sprintf("%.1f s", c.CPUSeconds), dash(cut(c.Upstream, 28)), dash(cut(c.Route, 48)), dash(c.Phase), over, cut(c.Proxy, 28)})
	}
	var text bytes.Buffer
	table(&text, rows)
	fmt.Fprintln(w)
	for i, line := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		if width > 0 {
			line = cut(line, width)
		}
		if i == 0 {
			line = e.paint(bold, line)
		}
		fmt.Fprintln(w, line)
	}
}
