package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// table is printed to standard output with aligned columns.
type table struct{ w *tabwriter.Writer }

func newTable(heads ...string) *table {
	t := &table{tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)}
	fmt.Fprintln(t.w, strings.Join(heads, "\t"))
	return t
}

func (t *table) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = fmt.Sprint(c)
	}
	fmt.Fprintln(t.w, strings.Join(text, "\t"))
}

func (t *table) flush() error { return t.w.Flush() }

func share(n, of int64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func perThousand(d time.Duration, samples int64) string {
	if samples == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", d.Seconds()*1000/float64(samples))
}
