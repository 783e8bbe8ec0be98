package drill

import (
	"strings"
	"testing"
	"time"
)

func TestMemoryOfALastingAgent(t *testing.T) {
	var points []memoryPoint
	for i := range 61 { // one a minute: it fills its caches, then grows by 6 MiB an hour
		rss := 20.0 + 0.1*float64(i)
		if i < 10 {
			rss = 10 + float64(i)
		}
		points = append(points, memoryPoint{at: time.Duration(i) * time.Minute, rss: int64(rss * (1 << 20)), cpu: 0.6 * float64(i)})
	}
	want := "one agent for 1h0m0s: 10.0 MiB at first, 26.0 at last, 26.0 at most; 1.00 % of a core; after the first fifth +6.00 MiB an hour"
	if got := memoryText(points); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := memoryText(points[:1]); !strings.Contains(got, "too seldom") {
		t.Error(got)
	}
	if got := slope([]memoryPoint{{at: 1, rss: 5}, {at: 1, rss: 9}}); got != 0 {
		t.Errorf("slope without time: %v", got)
	}
}

func TestALastingAgentCannotBeKilled(t *testing.T) {
	code, _, stderr := command(t, "gcd-nan-agent-killed", "--one-agent")
	if code != 2 || !strings.Contains(stderr, "gcd-nan-agent-killed kills its agent") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

func TestNegativesAndFaultsAreAllCases(t *testing.T) {
	seen := map[string]int{}
	for _, n := range expand([]string{"negatives", "faults"}) {
		seen[n]++
	}
	for _, n := range caseNames() {
		if seen[casePrefix+n] != 1 {
			t.Errorf("case %s is in %d of the groups, want 1", n, seen[casePrefix+n])
		}
	}
}
