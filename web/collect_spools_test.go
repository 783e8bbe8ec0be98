package web

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What waits for receivers is counted by receiver, in names that promtool likes.
func TestSpools(t *testing.T) {
	m := NewMetrics("0.1.0", newFake())
	m.WatchSpools(func() []Spool {
		return []Spool{
			{Receiver: "webhook", Waiting: 3, Unsaved: 1, Bytes: 4096, Queued: 9, Delivered: 5, Failed: 7, Dropped: 1},
			{Receiver: "otlp", Queued: 2, Delivered: 2},
		}
	})
	text := scrape(t, m)
	for series, want := range map[string]float64{
		`spinguard_spool_items{receiver="webhook"}`:           3,
		`spinguard_spool_unsaved_items{receiver="webhook"}`:   1,
		`spinguard_spool_bytes{receiver="webhook"}`:           4096,
		`spinguard_spool_queued_total{receiver="webhook"}`:    9,
		`spinguard_spool_delivered_total{receiver="webhook"}`: 5,
		`spinguard_spool_failures_total{receiver="webhook"}`:  7,
		`spinguard_spool_dropped_total{receiver="webhook"}`:   1,
		`spinguard_spool_delivered_total{receiver="otlp"}`:    2,
	} {
		if got := value(t, text, series); got != want {
			t.Errorf("%s is %g, want %g", series, got, want)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		lacks(t, "no promtool")
	}
	c := exec.Command(promtool, "check", "metrics")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// lacks skips a test for want of something, or fails it where nothing may be
// skipped.
func lacks(t *testing.T, what ...any) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}
