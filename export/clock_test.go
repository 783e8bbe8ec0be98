package export

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// A clock that was set back or far ahead while an incident was open makes no
// times that a receiver would refuse.
func TestClockJump(t *testing.T) {
	p, err := profile.ParseData(mixed(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		x := &Exporter{o: Options{Name: "spinguard"}, queue: make(chan entry, 1)}
		x.Push(sample(), mixed(t), began.Add(jump))
		line, _, _ := bytes.Cut((<-x.queue).data, []byte("\n"))
		var h head
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		if h.Until <= h.From || h.From != began.Unix() {
			t.Errorf("%s: from %d until %d", jump, h.From, h.Until)
		}
		for _, one := range request(h, p).ResourceProfiles[0].ScopeProfiles[0].Profiles {
			if want := uint64(max(jump, 0)); one.TimeUnixNano != uint64(began.UnixNano()) || one.DurationNano != want {
				t.Errorf("%s: at %d for %d, want %d", jump, one.TimeUnixNano, one.DurationNano, want)
			}
		}
	}
}
