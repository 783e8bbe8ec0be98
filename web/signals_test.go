package web

import (
	"testing"

	"github.com/spinguard/spinguard/web/api"
)

// countingSource is one whose agent counts connects.
type countingSource struct{ *fakeSource }

func (f countingSource) Signals() api.Signals {
	s := f.fakeSource.Signals()
	s.Counting = "20 connects failed (Tcp.AttemptFails)"
	s.Backends = map[string]uint64{"127.0.0.1:9000": 2}
	s.Connects = []api.PeerConnects{
		{Proxy: "nginx-main", Peer: "10.0.0.1:80", Begun: 20, Established: 10, Refused: 4, TimedOut: 3, GivenUp: 2, Unreachable: 1, Closed: 9, Reset: 8, Lost: 7},
		{Proxy: "nginx-main", Begun: 5},
	}
	return s
}

func TestConnectsAreMetrics(t *testing.T) {
	text := scrape(t, NewMetrics("0.1.0", countingSource{newFake()}))
	const peer = `{proxy="nginx-main",upstream="10.0.0.1:80"}`
	for name, want := range map[string]float64{
		"connects_total" + peer: 20, "connects_refused_total" + peer: 4, "connects_timed_out_total" + peer: 3, "connects_given_up_total" + peer: 2,
		"connects_unreachable_total" + peer: 1, "connections_closed_total" + peer: 9, "connections_reset_total" + peer: 8, "connections_lost_total" + peer: 7,
		`connects_total{proxy="nginx-main",upstream="other"}`: 5,
		`backend_restarts_total{upstream="127.0.0.1:9000"}`:   2, "connects_counted": 1,
	} {
		if got := value(t, text, "spinguard_"+name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
}
