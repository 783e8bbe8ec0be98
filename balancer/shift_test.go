package balancer

import (
	"testing"
	"time"
)

// A clock that was set neither ends a quarantine nor lengthens it; what was
// over stays so.
func TestLedgerShift(t *testing.T) {
	for _, d := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		l := openTemp(t)
		for _, e := range []Entry{version("a", 1, 30*time.Second), version("old", 2, time.Second)} {
			if _, err := l.Add(e, noon); err != nil {
				t.Fatal(err)
			}
		}
		now := noon.Add(15 * time.Second) // old is over since more than its grace
		if err := l.Shift(d, now.Add(d)); err != nil {
			t.Fatal(err)
		}
		if in, out := ids(t, l, now.Add(d).Add(14*time.Second)), ids(t, l, now.Add(d).Add(16*time.Second)); in != "a" || out != "" {
			t.Errorf("set by %s: in force after 29 s: %q, after 31 s: %q; want a and nothing", d, in, out)
		}
	}
}

// What was made by a clock that was then set back, while no agent ran, begins
// again, and does not last for a year.
func TestLedgerRebase(t *testing.T) {
	l := openTemp(t)
	if _, err := l.Add(version("a", 1, 30*time.Second), noon); err != nil {
		t.Fatal(err)
	}
	year := noon.AddDate(-1, 0, 0)
	if err := l.Rebase(year); err != nil {
		t.Fatal(err)
	}
	if in, out := ids(t, l, year.Add(29*time.Second)), ids(t, l, year.Add(31*time.Second)); in != "a" || out != "" {
		t.Errorf("in force after 29 s: %q, after 31 s: %q; want a and nothing", in, out)
	}
	if err := l.Rebase(year.Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if out := ids(t, l, year.Add(31*time.Second)); out != "" {
		t.Errorf("%q lasts longer with each agent", out)
	}
}
