package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
)

// What alerts and panels link to: the incident that they are about, though
// others began since.
func TestLatest(t *testing.T) {
	s, _ := server(t)
	first := testIncident()
	later := testIncident()
	later.Began = first.Began.Add(time.Hour)
	later.ID, later.Verdict, later.Proxy = incident.NewID(later.Began, nil), "blocked", "nginx-edge"
	if err := s.o.Incidents.(*incident.Store).Create(later, nil); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%.3f", float64(first.Began.UnixMilli())/1000)
	for _, c := range []struct {
		query string
		code  int
		want  string // where it leads, or what it says
	}{
		{"", 303, "/incidents/" + later.ID + "/"},
		{"?proxy=nginx-main", 303, "/incidents/" + testID + "/"},
		{"?verdict=runaway", 303, "/incidents/" + testID + "/"},
		{"?at=" + at, 303, "/incidents/" + testID + "/"},
		{"?at=" + at + "&file=flamegraph.svg", 303, "/incidents/" + testID + "/flamegraph.svg"},
		{"?at=" + at + "&file=diff.svg", 303, "/incidents/" + testID + "/"}, // it has none
		{"?file=../../../etc/passwd", 303, "/incidents/" + later.ID + "/"},
		{"?at=1000", 404, "no incident like that"},
		{"?at=NaN", 400, "no time"}, {"?at=noon", 400, "no time"}, {"?at=1e300", 400, "no time"},
	} {
		r := ask(t, s.Handler(false), "GET", "/incidents/latest"+c.query, "")
		got := r.Header.Get("Location")
		if c.code != 303 {
			got = text(t, r)
		}
		if r.StatusCode != c.code || !strings.Contains(got, c.want) || c.code == 303 && got != c.want {
			t.Errorf("%s: %d %.200s, want %d %s", c.query, r.StatusCode, got, c.code, c.want)
		}
	}
	// The address in the notifications, without the slash.
	if r := ask(t, s.Handler(false), "GET", "/incidents/"+testID, ""); r.StatusCode != 301 && r.StatusCode != 307 && r.StatusCode != 308 || r.Header.Get("Location") != "/incidents/"+testID+"/" {
		t.Errorf("without the slash: %d, %q", r.StatusCode, r.Header.Get("Location"))
	}
}
