package export

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
)

var began = time.Unix(1_795_000_000, 0)

func sample() *incident.Incident {
	return &incident.Incident{
		ID: "20261130T015749.000Z-a1b2c3", Origin: "lb-7", Proxy: "nginx-main", Kind: "nginx", Verdict: "runaway", Began: began,
		Evidence: incident.Evidence{Upstream: "sh{op},a=b"}, Samples: incident.Samples{RateHz: 499},
	}
}

// gz returns a small profile, as an incident has it.
func gz(t *testing.T) []byte {
	t.Helper()
	f := &profile.Function{ID: 1, Name: "gcd"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f, Line: 12}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{3, 6_000_000}}},
		Function:   []*profile.Function{f}, Location: []*profile.Location{l},
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The grammar that Pyroscope reads a name by.
var ingestName = regexp.MustCompile(`^[a-zA-Z0-9._-]+\{([a-z_]+=[^{},=]+)(,[a-z_]+=[^{},=]+)*\}$`)

// ingest is a receiver that holds requests against the protocol of /ingest.
func ingest(t *testing.T, r *http.Request) *profile.Profile {
	t.Helper()
	q := r.URL.Query()
	if r.Method != http.MethodPost || r.URL.Path != "/tenant/ingest" || q.Get("format") != "pprof" || q.Get("spyName") != "spinguard" || q.Get("sampleRate") != "499" {
		t.Errorf("%s %s", r.Method, r.URL)
	}
	if name := q.Get("name"); !ingestName.MatchString(name) || !strings.HasPrefix(name, "spinguard{incident=20261130T015749.000Z-a1b2c3,") || !strings.Contains(name, "upstream=sh_op__a_b") {
		t.Errorf("name %q", name)
	}
	from, err1 := strconv.ParseInt(q.Get("from"), 10, 64)
	until, err2 := strconv.ParseInt(q.Get("until"), 10, 64)
	if err1 != nil || err2 != nil || from != began.Unix() || until <= from {
		t.Errorf("from %s until %s", q.Get("from"), q.Get("until"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	p, err := profile.ParseData(body)
	if err != nil {
		t.Errorf("the body is no profile: %v", err)
	}
	return p
}

// The profile waits on disk over a restart while the receiver is away, and
// arrives once, as it was.
func TestPushedOnceWhenTheReceiverIsBack(t *testing.T) {
	var back atomic.Bool
	tried, got := make(chan struct{}, 1), make(chan *profile.Profile, 4)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !back.Load() {
			w.WriteHeader(http.StatusBadGateway)
			select {
			case tried <- struct{}{}:
			default:
			}
			return
		}
		got <- ingest(t, r)
	}))
	defer server.Close()
	o := Options{
		Dir: t.TempDir(), Pyroscope: server.URL + "/tenant/", Name: "spinguard", Log: zap.NewNop(),
		Pause: func(int) time.Duration { return 5 * time.Millisecond },
	}
	x := New(o)
	x.Push(sample(), gz(t), began)
	<-tried
	x.Close()
	back.Store(true)
	x = New(o)
	select {
	case p := <-got:
		if p == nil || len(p.Sample) != 1 || p.Sample[0].Value[1] != 6_000_000 || p.Function[0].Name != "gcd" {
			t.Errorf("profile %v", p)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
	for x.Spools()[0].Delivered == 0 { // the answer is on its way
		time.Sleep(time.Millisecond)
	}
	x.Close()
	if len(got) > 0 || x.Spools()[0].Waiting > 0 {
		t.Errorf("%d more, %+v", len(got), x.Spools()[0])
	}
}

func TestNoReceiver(t *testing.T) {
	x := New(Options{Dir: "/nonexistent"})
	if x != nil {
		t.Fatal(x)
	}
	x.Push(sample(), []byte("x"), began)
	x.Close()
}

func FuzzName(f *testing.F) {
	f.Add("shop", "nginx-main")
	f.Add("{a=b}", "\xff,\x00")
	f.Fuzz(func(t *testing.T, upstream, proxy string) {
		inc := sample()
		inc.Evidence.Upstream, inc.Proxy = upstream, proxy
		if n := name("spinguard", inc); !ingestName.MatchString(n) || len(n) > 1000 {
			t.Errorf("%q", n)
		}
	})
}
