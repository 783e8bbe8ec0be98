package profiler

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
)

// cpuTime returns what this process has used of the CPUs: on a busy machine
// the wall clock says little.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkUnderstand shows what one sample costs once the caches are warm.
func BenchmarkUnderstand(b *testing.B) {
	for _, c := range []struct{ name, lua string }{
		{"render", "ngx.say(cases.render(150000))"},
		{"interpreter", "interpreted.gcd()"},
		{"trace", "cases.gcd()"},
		{"pattern", "cases.pattern()"},
		{"json", "cases.cjson()"},
		{"deep regex", "cases.deep()"},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := startNginx(b, 1, "", luaCases, "location /go { content_by_lua_block { "+c.lua+" } }")
			n.Load(b, "/go", 4)
			s, p := openSampler(b), openProcess(b, n.Workers[0])
			watch(b, s, p)
			var samples []bpf.Sample
			take(b, s, 200, 3*time.Second, func(x bpf.Sample) { samples = append(samples, x) })
			_ = s.Unwatch(p.PID())
			// It would take the CPU that is measured.
			if err := unix.Kill(p.PID(), unix.SIGSTOP); err != nil {
				b.Fatal(err)
			}
			for _, x := range samples {
				p.Understand(x)
			}
			b.ResetTimer()
			before := cpuTime(b)
			for i := 0; i < b.N; i++ {
				p.Understand(samples[i%len(samples)])
			}
			b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
