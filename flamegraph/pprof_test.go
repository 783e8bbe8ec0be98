package flamegraph

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/profiler/stack"
)

// agentProfile is a profile as the agent writes it: kinds in pseudo mappings,
// labels per sample, the account in the comments.
func agentProfile() *profile.Profile {
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		TimeNanos:     1796003869123456789,
		DurationNanos: 30e9,
		Comments:      []string{"samples_taken=20", "samples_shown=18", "samples_lost=2", "lost_ring=2"},
	}
	mappings := map[string]*profile.Mapping{}
	locate := func(image, name, file string, line int64) *profile.Location {
		m := mappings[image]
		if m == nil {
			m = &profile.Mapping{ID: uint64(len(p.Mapping) + 1), File: image, Start: 0x1000, Offset: 0x200}
			mappings[image] = m
			p.Mapping = append(p.Mapping, m)
		}
		loc := &profile.Location{ID: uint64(len(p.Location) + 1), Mapping: m, Address: 0x1500}
		p.Location = append(p.Location, loc)
		if name != "" {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, Filename: file}
			p.Function = append(p.Function, f)
			loc.Line = []profile.Line{{Function: f, Line: line}}
		}
		return loc
	}
	start := locate("/usr/sbin/nginx", "_start", "", 0)
	static := locate("/usr/sbin/nginx", "", "", 0)
	gcd := locate("[lua]", "gcd", "wrr.lua", 12)
	trace := locate("[trace]", "gcd", "wrr.lua", 13)
	floor := locate("[builtin]", "math.floor", "", 0)
	truncated := locate("[unknown]", "[truncated]", "", 0)
	add := func(n int64, labels map[string][]string, locs ...*profile.Location) {
		p.Sample = append(p.Sample, &profile.Sample{Location: locs, Value: []int64{n, n * 10e6}, Label: labels})
	}
	media := map[string][]string{"upstream": {"media"}, "request": {"GET /a"}}
	api := map[string][]string{"upstream": {"api"}, "request": {"GET /b"}}
	add(8, media, gcd, static, start)
	add(4, media, trace, static, start)
	add(3, api, floor, gcd, static, start)
	add(2, api, static, start)
	add(1, nil, gcd, truncated)
	return p
}

func TestPprofFrames(t *testing.T) {
	p, err := FromPprof(agentProfile(), "test", "")
	if err != nil {
		t.Fatal(err)
	}
	want := []Frame{
		{Name: "[truncated]"},
		{Name: "_start", Image: "nginx", Kind: stack.Native},
		{Name: "gcd", Place: "wrr.lua:12", Kind: stack.Lua},
		{Name: "gcd", Place: "wrr.lua:13", Kind: stack.Trace},
		{Name: "math.floor", Kind: stack.Builtin},
		{Name: "nginx+0x700", Image: "nginx", Kind: stack.Native},
	}
	if !slices.Equal(p.frames, want) {
		t.Errorf("frames:\n%v\nwant:\n%v", p.frames, want)
	}
	if p.Type != "cpu" || p.Total() != 180e6 {
		t.Errorf("%s %d, want cpu 180000000", p.Type, p.Total())
	}
	if s := p.Account.Sentence(); s != "Samples: 20 taken = 18 shown + 2 lost (ring 2)." {
		t.Errorf("account %q", s)
	}
}

func TestPprofSampleType(t *testing.T) {
	if p, err := FromPprof(agentProfile(), "test", "samples"); err != nil || p.Total() != 18 {
		t.Errorf("total of samples %d, %v; want 18", p.Total(), err)
	}
	_, err := FromPprof(agentProfile(), "test", "bytes")
	if err == nil || !strings.Contains(err.Error(), `sample type "bytes": not in the profile, which has ["samples" "cpu"]`) {
		t.Errorf("error %v", err)
	}
}

func TestPprofInlined(t *testing.T) {
	in := agentProfile()
	f := &profile.Function{ID: 100, Name: "inlined"}
	in.Function = append(in.Function, f)
	loc := in.Location[0]
	loc.Line = append([]profile.Line{{Function: f}}, loc.Line...)
	in.Sample = []*profile.Sample{{Location: []*profile.Location{loc}, Value: []int64{1, 1}}}
	p, err := FromPprof(in, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := folded(t, p); !strings.HasSuffix(got, "_start;inlined 1\n") {
		t.Errorf("inlined function is not above its caller:\n%s", got)
	}
}

func TestPprofRoundTrip(t *testing.T) {
	p, err := FromPprof(agentProfile(), "test", "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&b, "test")
	if err != nil {
		t.Fatal(err)
	}
	if folded(t, again) != folded(t, p) {
		t.Errorf("read back:\n%s\nwant:\n%s", folded(t, again), folded(t, p))
	}
	if !slices.Equal(again.frames, p.frames) {
		t.Errorf("frames read back:\n%v\nwant:\n%v", again.frames, p.frames)
	}
	if len(again.sets) != 3 || !again.Start.Equal(p.Start) || again.Duration != p.Duration {
		t.Errorf("labels %v, start %v, duration %v", again.sets, again.Start, again.Duration)
	}
}

func TestPprofDifferenceRoundTrip(t *testing.T) {
	d := difference(t)
	var b bytes.Buffer
	if err := d.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&b, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	if folded(t, again) != folded(t, d) || !again.Differential() {
		t.Errorf("read back:\n%s\nwant:\n%s", folded(t, again), folded(t, d))
	}
}

func TestGoToolPprofOpens(t *testing.T) {
	gotool, err := exec.LookPath("go")
	if err != nil {
		missing(t, "go tool")
	}
	file := filepath.Join(t.TempDir(), "p.pb.gz")
	if _, err := Convert("testdata/worker.folded", "", file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gotool, "tool", "pprof", "-top", file)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "gcd wrr.lua:12") || !strings.Contains(string(out), "32.16%") {
		t.Errorf("go tool pprof: %v\n%s", err, out)
	}
}

// missing skips a test for want of something, or fails it where everything is
// meant to be there.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatalf("%s: not found", what)
	}
	t.Skipf("%s: not found", what)
}

// TestPprofPrefersCPU: cpu time is shown wherever it stands, else the default,
// else the last type.
func TestPprofPrefersCPU(t *testing.T) {
	in := agentProfile()
	in.SampleType = []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}, {Type: "samples", Unit: "count"}}
	if p, err := FromPprof(in, "test", ""); err != nil || p.Type != "cpu" || p.Total() != 18 {
		t.Errorf("%v %v, want cpu", p, err)
	}
	in.SampleType[0].Type = "wall"
	if p, err := FromPprof(in, "test", ""); err != nil || p.Type != "samples" {
		t.Errorf("%v %v, want the last type", p, err)
	}
	in.DefaultSampleType = "wall"
	if p, err := FromPprof(in, "test", ""); err != nil || p.Type != "wall" {
		t.Errorf("%v %v, want the default type", p, err)
	}
}
