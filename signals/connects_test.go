package signals

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var shop = netip.MustParseAddrPort("10.0.0.1:80")

// take hands over one round of counts of process 7.
func take(c *Collector, n int, fresh bool, t Tally) (r Report) {
	workers := []Worker{{Proxy: "p", Index: 1, PID: 7}}
	c.TakeConnects(&r, started.Add(time.Duration(n)*Every), workers, []Connects{{7, shop, t}, {8, shop, t}}, fresh)
	return r
}

func TestTellsConnectsThatFail(t *testing.T) {
	c := newCollector("", nil)
	counts := []Tally{
		{Begun: 100, Established: 96, Refused: 4},
		{Begun: 120, Established: 106, Refused: 12, GivenUp: 2}, // of 20 more 8 refused, 2 given up
		{Begun: 130, Established: 108, Refused: 20, GivenUp: 2},
	}
	for i, want := range []string{"", "connects: 10 of 20 connects to 10.0.0.1:80 failed: 8 refused, 2 given up by the proxy", ""} {
		r := take(c, i, i == 0, counts[i])
		if got := strings.Join(kinds(r), "; "); got != want {
			t.Errorf("round %d: %q, want %q", i, got, want)
		}
		if suspected := i > 0; (r.Suspected != "") != suspected {
			t.Errorf("round %d: suspected %q", i, r.Suspected)
		}
		if want := []PeerConnects{{"p", shop, counts[i]}}; !slices.Equal(r.Connects, want) {
			t.Errorf("round %d: %+v, want %+v", i, r.Connects, want)
		}
	}
	// Counted from nothing once more: the sum goes on.
	if r := take(c, 3, true, Tally{Begun: 1, Established: 1}); r.Connects[0].Begun != 131 {
		t.Errorf("%+v", r.Connects)
	}
}

func TestTellsPeersWithEverMoreConnects(t *testing.T) {
	c := newCollector("", nil)
	var sum Tally
	for i := range 12 {
		sum.Begun, sum.Established = sum.Begun+30, sum.Established+30
		if r := take(c, i, i == 0, sum); len(r.Signals) != 0 {
			t.Fatal(kinds(r))
		}
	}
	sum.Begun, sum.Established = sum.Begun+400, sum.Established+400
	if got := kinds(take(c, 12, false, sum)); len(got) != 1 || got[0] != "connections: 400 connects to 10.0.0.1:80 within 5s, usual are 30" {
		t.Error(got)
	}
}

func TestPeersAreBounded(t *testing.T) {
	c := newCollector("", nil)
	workers := []Worker{{Proxy: "p", Index: 1, PID: 7}}
	var r Report
	for i := range peersMost + 10 {
		peer := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80)
		c.TakeConnects(&r, started, workers, []Connects{{7, peer, Tally{Begun: 1}}}, false)
	}
	if n := len(r.Connects); n != peersMost+1 || r.Connects[0].Peer.IsValid() || r.Connects[0].Begun != 10 {
		t.Errorf("%d peers, the first %+v", n, r.Connects[0])
	}
	// After a while those that are no longer used make room.
	c.TakeConnects(&r, started.Add(2*forgetAfter), workers, []Connects{{7, netip.MustParseAddrPort("[::1]:80"), Tally{Begun: 1}}}, false)
	if n := len(r.Connects); n > 2 {
		t.Errorf("%d peers are remembered", n)
	}
}
