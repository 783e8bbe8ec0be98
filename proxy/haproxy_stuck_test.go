package proxy

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// stuckThread has HAProxy loop in one thread for 1.2 seconds, below the 2
// seconds of CPU that its own watchdog allows, and finds the thread by its CPU time.
func stuckThread(t *testing.T, p *Proxy, stats string) Worker {
	t.Helper()
	before := make(map[int]uint64)
	for _, w := range p.Workers {
		before[w.TID] = cpuNanoseconds(t, w)
	}
	c, err := net.Dial("tcp", stats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprint(c, "expert-mode on; debug dev loop 1200\n")
	var stuck Worker
	eventually(t, "a busy thread", func() bool {
		for _, w := range p.Workers {
			if cpuNanoseconds(t, w)-before[w.TID] > uint64(100*time.Millisecond) {
				stuck = w
				return true
			}
		}
		return false
	})
	return stuck
}

func cpuNanoseconds(t testing.TB, w Worker) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", w.PID, w.TID))
	if err != nil {
		t.Fatal(err)
	}
	v, err := strconv.ParseUint(strings.Fields(string(b))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkOthersTurn sends requests until one other thread has turned.
func checkOthersTurn(t *testing.T, s *server, p *Proxy, stuck Worker) {
	t.Helper()
	mem, err := procmem.Open(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	words := func() (sum uint32) {
		for _, w := range p.Workers {
			if w.TID != stuck.TID {
				v, _ := procmem.Uint32(mem, w.Progress.Addr)
				sum += v
			}
		}
		return sum
	}
	first := words()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 100 * time.Millisecond}
	eventually(t, "a turn of another thread", func() bool {
		if res, err := client.Get(s.url("/")); err == nil {
			_ = res.Body.Close()
		}
		return words() != first
	})
}
