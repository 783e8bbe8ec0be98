package profiler

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// testRate is a prime, so that it falls into step with nothing.
const testRate = 499

func TestMain(m *testing.M) {
	SelfTestChild()
	os.Exit(m.Run())
}

// openSampler returns a running sampler, or skips the test.
func openSampler(t testing.TB) *bpf.Sampler {
	t.Helper()
	s, err := bpf.Open(testRate)
	if err != nil {
		missing(t, err.Error())
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openProcess(t testing.TB, pid int) *Process {
	t.Helper()
	p, err := Open(pid, symbol.NewCache(64))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// watch has the sampler copy all of the process's main thread.
func watch(t testing.TB, s *bpf.Sampler, p *Process) {
	t.Helper()
	w := bpf.Watch{PID: p.PID(), TID: p.PID(), Lua: p.LuaWatch(), Full: true}
	if err := s.Watch(w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Unwatch(p.PID()) })
}

// take understands n samples as they come, at most for the given time.
func take(t testing.TB, s *bpf.Sampler, n int, most time.Duration, each func(bpf.Sample)) int {
	t.Helper()
	got := 0
	for end := time.Now().Add(most); got < n && time.Now().Before(end); {
		sample, err := s.Read(time.Now().Add(10 * time.Millisecond))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got++
		each(sample)
	}
	return got
}
