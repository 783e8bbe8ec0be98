package profiler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/symbol"
)

func TestCapture(t *testing.T) {
	n := startNginx(t, 1, "", luaCases, "location /go { content_by_lua_block { cases.gcd() } }")
	n.Trigger(t, "/go")
	s, p := openSampler(t), openProcess(t, n.Workers[0])
	calls := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	prof, err := Capture(ctx, s, p, CaptureOptions{
		Duration: aMinute, Period: time.Second / testRate, Proxy: "nginx",
		Label: func(_ *Process, _ bpf.Sample, _ Result, l *Labels) { l.Request = "GET /go" },
		Progress: func(now Progress) {
			if calls++; calls > 2 && now.Samples > 100 {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 2 {
		t.Errorf("%d calls of Progress", calls)
	}
	if got := commentOf(t, prof, "samples_lost"); got != "0" {
		t.Errorf("samples_lost=%s", got)
	}
	var all, gcd int64
	for _, x := range prof.Sample {
		all += x.Value[1]
		if strings.HasSuffix(x.Location[0].Line[0].Function.Filename, "cases.lua") && x.Location[0].Mapping.File == "[trace]" {
			gcd += x.Value[1]
		}
		if x.Label["request"][0] != "GET /go" || x.Label["proxy"][0] != "nginx" {
			t.Fatalf("labels %v", x.Label)
		}
	}
	if gcd*10 < all*9 {
		t.Errorf("%v of %v in the loop", time.Duration(gcd), time.Duration(all))
	}
}

// All that the sampler took is in the profile, shown or lost.
func TestCaptureCountsWhatTheSamplerTook(t *testing.T) {
	n := startNginx(t, 1, "", luaCases, "location /go { content_by_lua_block { ngx.say(cases.render(100000)) } }")
	n.Load(t, "/go", 4)
	s, p := openSampler(t), openProcess(t, n.Workers[0])
	before, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	prof, err := Capture(context.Background(), s, p, CaptureOptions{Duration: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	want := after.Taken - before.Taken
	if got := commentNumber(t, prof, "samples_taken"); got != want || want == 0 {
		t.Errorf("samples_taken=%d, the sampler took %d", got, want)
	}
}

func TestCaptureOfAnEndingProcess(t *testing.T) {
	n := startNginx(t, 1, "", luaCases, "location /go { content_by_lua_block { ngx.timer.at(0.2, function() os.exit(0) end) } }")
	s, p := openSampler(t), openProcess(t, n.Workers[0])
	n.Trigger(t, "/go")
	prof, err := Capture(context.Background(), s, p, CaptureOptions{Duration: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := commentOf(t, prof, "ended"); !strings.Contains(got, "process ended") {
		t.Errorf("ended=%q", got)
	}
}

func TestSelfTest(t *testing.T) {
	r, err := SelfTest(context.Background(), openSampler(t), symbol.NewCache(16))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if !r.OK() || r.UserWhole == 0 || r.SyscallWhole == 0 {
		t.Errorf("self-test: %+v", r)
	}
}

func commentNumber(t *testing.T, p *profile.Profile, key string) uint64 {
	t.Helper()
	var n uint64
	for _, c := range commentOf(t, p, key) {
		n = n*10 + uint64(c-'0')
	}
	return n
}
