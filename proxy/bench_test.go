package proxy

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// BenchmarkScan is one scan of a host with 500 other processes and one nginx
// with 64 workers. A scan every second at 0.1 % of a core may take 1 ms.
func BenchmarkScan(b *testing.B) {
	s := startNginx(b, nginxOptions{main: "worker_processes 64;"})
	sleepers := make([]*exec.Cmd, 500)
	for i := range sleepers {
		sleepers[i] = exec.Command(need(b, "sleep"), "600")
		if err := sleepers[i].Start(); err != nil {
			b.Fatal(err)
		}
	}
	defer func() {
		for _, cmd := range sleepers {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	f := newFinder(b)
	waitProxy(b, f, s.pid, "64 workers", started(64))
	b.ReportAllocs()
	before, scans := cpuTime(b), f.scans
	for b.Loop() {
		if _, err := f.Scan(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(f.scans-scans), "cpu-ns/op")
	b.ReportMetric(float64(len(f.known)), "processes")
}

// cpuTime is the CPU time that this process has used: on a busy machine wall
// time says little.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkLookIdle(b *testing.B) {
	s := startNginx(b, nginxOptions{main: "worker_processes 1;"})
	w := waitProxy(b, newFinder(b), s.pid, "a worker", started(1)).Workers[0]
	watch := newWatcher(b, w)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := watch.Look(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookClosely(b *testing.B) {
	s := startNginx(b, nginxOptions{main: "worker_processes 1;"})
	w := waitProxy(b, newFinder(b), s.pid, "a worker", started(1)).Workers[0]
	watch := newWatcher(b, w)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := watch.LookClosely(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkRequest(b *testing.B, find func(procmem.Memory, procmem.Window)) {
	s := startNginx(b, nginxOptions{lua: true, main: "worker_processes 1;", http: loops, location: loopLocations})
	w := waitProxy(b, newFinder(b), s.pid, "a worker", started(1)).Workers[0]
	hang(b, s, "GET /balanced HTTP/1.1\r\nHost: x\r\n\r\n")
	findStuck(b, w)
	window, _ := liveStack(b, w)
	mem, err := procmem.Open(w.PID)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		find(mem, window)
	}
}

func BenchmarkFindRequest(b *testing.B) {
	benchmarkRequest(b, func(mem procmem.Memory, window procmem.Window) { FindRequest(mem, window, 0) })
}

func BenchmarkFindRequestAgain(b *testing.B) {
	var f RequestFinder
	benchmarkRequest(b, func(mem procmem.Memory, window procmem.Window) { f.Find(mem, window, 0) })
}

func BenchmarkIdentifyRequest(b *testing.B) {
	benchmarkRequest(b, func(mem procmem.Memory, window procmem.Window) { IdentifyRequest(mem, window, 0) })
}
