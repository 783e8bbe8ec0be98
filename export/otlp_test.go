package export

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	otlp "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/spinguard/spinguard/incident"
)

// mixed is a profile with two stacks that share frames, a Lua frame, a build id
// and labels.
func mixed(t *testing.T) []byte {
	t.Helper()
	native := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, Offset: 0x100, File: "/usr/sbin/nginx", BuildID: "c0ffee"}
	lua := &profile.Mapping{ID: 2, File: "[lua]"}
	gcd := &profile.Function{ID: 1, Name: "gcd", SystemName: "gcd", Filename: "wrr.lua", StartLine: 10}
	run := &profile.Function{ID: 2, Name: "ngx_http_lua_run_thread", Filename: ""}
	leaf := &profile.Location{ID: 1, Mapping: lua, Line: []profile.Line{{Function: gcd, Line: 12}}}
	root := &profile.Location{ID: 2, Mapping: native, Address: 0x1234, Line: []profile.Line{{Function: run}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 2_004_008,
		Sample: []*profile.Sample{
			{Location: []*profile.Location{leaf, root}, Value: []int64{3, 6_000_000}, Label: map[string][]string{"request": {"GET /a"}, "bad": {"\xff<b>"}}},
			{Location: []*profile.Location{root}, Value: []int64{1, 2_000_000}, NumLabel: map[string][]int64{"stall": {325}}, NumUnit: map[string][]string{"stall": {"milliseconds"}}},
			{Location: []*profile.Location{leaf, root}, Value: []int64{2, 4_000_000}},
		},
		Mapping: []*profile.Mapping{native, lua}, Function: []*profile.Function{gcd, run}, Location: []*profile.Location{leaf, root},
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode holds a request against the protocol and returns what it carries.
func decode(t *testing.T, r *http.Request) *collector.ExportProfilesServiceRequest {
	t.Helper()
	if r.Method != http.MethodPost || r.URL.Path != "/tenant/v1development/profiles" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Error(err)
		return nil
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Error(err)
	}
	var m collector.ExportProfilesServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		t.Error(err)
	}
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("fields that the protocol does not know: %x", m.ProtoReflect().GetUnknown())
	}
	return &m
}

// checkTables says what in the tables breaks the protocol's rules.
func checkTables(t *testing.T, d *otlp.ProfilesDictionary) {
	t.Helper()
	firsts := []proto.Message{d.MappingTable[0], d.LocationTable[0], d.FunctionTable[0], d.AttributeTable[0], d.StackTable[0]}
	for _, first := range firsts {
		if proto.Size(first) != 0 {
			t.Errorf("entry 0 of a table is %v, not empty", first)
		}
	}
	if d.StringTable[0] != "" || len(d.LinkTable) != 1 || len(d.LinkTable[0].TraceId) != 16 || len(d.LinkTable[0].SpanId) != 8 {
		t.Errorf("string 0 %q, links %v", d.StringTable[0], d.LinkTable)
	}
	seen := map[string]bool{}
	for _, s := range d.StringTable {
		if seen[s] || !utf8.ValidString(s) {
			t.Errorf("string %q: twice, or no UTF-8", s)
		}
		seen[s] = true
	}
	within := func(what string, i int32, n int) {
		if i < 0 || int(i) >= n {
			t.Errorf("%s %d of %d", what, i, n)
		}
	}
	for _, s := range d.StackTable {
		for _, l := range s.LocationIndices {
			within("location", l, len(d.LocationTable))
		}
	}
	for _, l := range d.LocationTable {
		within("mapping", l.MappingIndex, len(d.MappingTable))
		for _, line := range l.Lines {
			within("function", line.FunctionIndex, len(d.FunctionTable))
		}
	}
}

// frames writes a stack as a person would: leaf first, with type and place.
func frames(d *otlp.ProfilesDictionary, stack int32) string {
	var b strings.Builder
	for _, i := range d.StackTable[stack].LocationIndices {
		l := d.LocationTable[i]
		f := d.FunctionTable[l.Lines[0].FunctionIndex]
		b.WriteString(d.StringTable[f.NameStrindex] + "@" + d.StringTable[d.MappingTable[l.MappingIndex].FilenameStrindex] + attributes(d, l.AttributeIndices) + " ")
	}
	return b.String()
}

func attributes(d *otlp.ProfilesDictionary, list []int32) string {
	var b strings.Builder
	for _, i := range list {
		a := d.AttributeTable[i]
		b.WriteString("{" + d.StringTable[a.KeyStrindex] + "=" + a.Value.String() + d.StringTable[a.UnitStrindex] + "}")
	}
	return strings.ReplaceAll(b.String(), "  ", " ")
}

// A profile reaches an OTLP receiver that was away, whole and by the protocol.
func TestOTLP(t *testing.T) {
	var back atomic.Bool
	tried, got := make(chan struct{}, 1), make(chan *collector.ExportProfilesServiceRequest, 4)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !back.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			select {
			case tried <- struct{}{}:
			default:
			}
			return
		}
		got <- decode(t, r)
		answer, _ := proto.Marshal(&collector.ExportProfilesServiceResponse{})
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	o := Options{
		Dir: t.TempDir(), OTLP: server.URL + "/tenant", Name: "shop-lb", Log: zap.NewNop(),
		Pause: func(int) time.Duration { return 5 * time.Millisecond },
	}
	x := New(o)
	x.Push(sample(), mixed(t), began.Add(1500*time.Millisecond))
	<-tried
	x.Close()
	back.Store(true)
	x = New(o)
	defer x.Close()
	var m *collector.ExportProfilesServiceRequest
	select {
	case m = <-got:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
	d, r := m.Dictionary, m.ResourceProfiles[0]
	checkTables(t, d)
	if text := r.Resource.String(); !strings.Contains(text, `"service.name"`) || !strings.Contains(text, `"shop-lb"`) || !strings.Contains(text, `"lb-7"`) {
		t.Errorf("resource %s", text)
	}
	profiles := r.ScopeProfiles[0].Profiles
	if len(profiles) != 2 || string(profiles[0].ProfileId) == string(profiles[1].ProfileId) || len(profiles[0].ProfileId) != 16 {
		t.Fatalf("profiles %v", profiles)
	}
	checkProfile(t, d, profiles[0], "samples/count", 3, 1, 2)
	checkProfile(t, d, profiles[1], "cpu/nanoseconds", 6_000_000, 2_000_000, 4_000_000)
	s := profiles[1].Samples
	if s[0].StackIndex != s[2].StackIndex || len(d.StackTable) != 3 || len(d.LocationTable) != 3 {
		t.Errorf("stacks are not shared: %v", d.StackTable)
	}
	if f := frames(d, s[0].StackIndex); !strings.HasPrefix(f, "gcd@[lua]{profile.frame.type=") || !strings.Contains(f, "luajit") || !strings.Contains(f, "ngx_http_lua_run_thread@/usr/sbin/nginx{profile.frame.type=") {
		t.Errorf("frames %s", f)
	}
	if a := attributes(d, s[0].AttributeIndices); !strings.Contains(a, "{spinguard.request=") || !strings.Contains(a, "GET /a") || !strings.Contains(a, "\uFFFD<b>") {
		t.Errorf("labels %s", a)
	}
	if a := attributes(d, s[1].AttributeIndices); !strings.Contains(a, "325") || !strings.Contains(a, "milliseconds") {
		t.Errorf("labels %s", a)
	}
	nginx := d.MappingTable[d.LocationTable[d.StackTable[s[1].StackIndex].LocationIndices[0]].MappingIndex]
	if nginx.MemoryStart != 0x1000 || nginx.FileOffset != 0x100 || !strings.Contains(attributes(d, nginx.AttributeIndices), "c0ffee") {
		t.Errorf("mapping %v", nginx)
	}
}

// checkProfile looks at type, values, times and attributes.
func checkProfile(t *testing.T, d *otlp.ProfilesDictionary, p *otlp.Profile, kind string, values ...int64) {
	t.Helper()
	if got := d.StringTable[p.SampleType.TypeStrindex] + "/" + d.StringTable[p.SampleType.UnitStrindex]; got != kind {
		t.Errorf("type %s, want %s", got, kind)
	}
	if len(p.Samples) != len(values) {
		t.Fatalf("%d samples", len(p.Samples))
	}
	for i, v := range values {
		if got := p.Samples[i].Values; len(got) != 1 || got[0] != v {
			t.Errorf("%s of sample %d: %v, want %d", kind, i, got, v)
		}
	}
	if p.TimeUnixNano != uint64(began.UnixNano()) || p.DurationNano != 1_500_000_000 || p.Period != 2_004_008 || d.StringTable[p.PeriodType.TypeStrindex] != "cpu" {
		t.Errorf("time %d, length %d, period %d", p.TimeUnixNano, p.DurationNano, p.Period)
	}
	a := attributes(d, p.AttributeIndices)
	for _, want := range []string{"{spinguard.incident=", "20261130T015749.000Z-a1b2c3", "{spinguard.verdict=", "runaway", "{spinguard.upstream=", "sh{op},a=b"} {
		if !strings.Contains(a, want) {
			t.Errorf("no %s in %s", want, a)
		}
	}
}

// A receiver that takes the request and rejects the profile is believed.
func TestOTLPRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer, _ := proto.Marshal(&collector.ExportProfilesServiceResponse{
			PartialSuccess: &collector.ExportProfilesPartialSuccess{RejectedProfiles: 2, ErrorMessage: "no"},
		})
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	x := New(Options{Dir: t.TempDir(), OTLP: server.URL, Name: "spinguard", Log: zap.NewNop()})
	defer x.Close()
	x.Push(sample(), mixed(t), began)
	for end := time.Now().Add(20 * time.Second); x.Spools()[0].Dropped == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", x.Spools())
		}
	}
	if c := x.Spools()[0]; c.Delivered != 0 || c.Waiting != 0 || c.Failed != 1 {
		t.Errorf("%+v", c)
	}
}

// A profile that came to harm on disk is given up, not sent for ever.
func FuzzEncodeOTLP(f *testing.F) {
	f.Add([]byte("x"), "shop", "n")
	f.Fuzz(func(t *testing.T, pprof []byte, upstream, node string) {
		inc := &incident.Incident{ID: "i", Origin: node, Evidence: incident.Evidence{Upstream: upstream}}
		body, err := encodeOTLP(head{App: "spinguard", Labels: labels(inc)}, pprof)
		if err == nil && len(body) == 0 {
			t.Error("neither body nor error")
		}
	})
}
