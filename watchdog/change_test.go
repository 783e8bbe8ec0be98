package watchdog

import (
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/balancer"
)

func TestChangeAsADifference(t *testing.T) {
	c := balancer.Change{
		Upstream: "shop", From: 1, To: 2, By: "admin 127.0.0.1", At: time.Unix(1796000000, 0),
		Lines: []string{`10.0.0.7:80 weight 5 -> "0"`, "10.0.0.8:80 added, weight 2", "10.0.0.9:80 removed, weight 1", "... and 3 more"},
	}
	want := "-10.0.0.7:80 weight 5\n+10.0.0.7:80 weight \"0\"\n+10.0.0.8:80 added, weight 2\n-10.0.0.9:80 removed, weight 1\n ... and 3 more\n"
	if got := changeOf(c); got.Text != want || got.From != "1" || got.To != "2" || got.Upstream != "shop" {
		t.Errorf("%+v", got)
	}
	if got := changeNote(c); !strings.Contains(got, `shop was published by admin 127.0.0.1 at 2026-11-30`) ||
		!strings.Contains(got, `changed: 10.0.0.7:80 weight 5 -> "0"`) {
		t.Error(got)
	}
	c.From = 0
	if got := changeOf(c); got.From != "" {
		t.Errorf("the first version comes from %q", got.From)
	}
}
