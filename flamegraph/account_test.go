package flamegraph

import (
	"slices"
	"testing"
)

func TestAccount(t *testing.T) {
	for _, c := range []struct {
		comments []string
		want     string
	}{
		{nil, "The profile does not say how many samples were lost."},
		{[]string{"samples_taken=3"}, "The profile does not say how many samples were lost."},
		{[]string{"taken=12000", "shown=12000", "lost=0"}, "Samples: 12,000 taken = 12,000 shown + 0 lost."},
		{[]string{"samples_taken=5", "samples_shown=3", "samples_lost=2", "lost_ring_full=1", "lost_cut=1"},
			"Samples: 5 taken = 3 shown + 2 lost (cut 1, ring full 1)."},
		{[]string{"samples_taken=2005", "samples_shown=2", "samples_lost=2003", "lost_ring_full=2001", "lost_ring_full_of_17=2000", "lost_ring_full_of_18=1", "lost_cut=2"},
			"Samples: 2,005 taken = 2 shown + 2,003 lost (cut 2, ring full 2,001: 2,000 of 17 and 1 of 18)."},
		{[]string{"samples_taken=9", "samples_shown=3\nsamples_lost=2"}, "Samples: 9 taken = 3 shown + 2 lost. These numbers do not add up."},
		{[]string{"samples_taken=9223372036854775807", "samples_shown=1", "samples_lost=9223372036854775807"},
			"Samples: 9,223,372,036,854,775,807 taken = 1 shown + 9,223,372,036,854,775,807 lost. These numbers do not add up."},
		{[]string{"samples_taken=5", "samples_shown=5", "samples_lost=0", "samples_truncated=1", "truncated_no_rule=1"},
			"Samples: 5 taken = 5 shown + 0 lost. Of those shown, 1 is truncated (no rule 1)."},
		{[]string{"samples_taken=-1", "samples_shown=x", "samples_lost=2"}, "The profile does not say how many samples were lost."},
	} {
		a := readAccount(c.comments)
		if got := a.Sentence(); got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.comments, got, c.want)
		}
		if again := readAccount(a.comments()); again.Sentence() != c.want || !slices.Equal(again.Notes, a.Notes) {
			t.Errorf("%q: written as %q", c.comments, a.comments())
		}
	}
}
