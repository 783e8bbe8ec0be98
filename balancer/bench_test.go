package balancer

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// BenchmarkPickers prints the table of lua/t/bench.lua. Set
// LUA_RESTY_BALANCER to a built checkout to see it in the same run.
func BenchmarkPickers(b *testing.B) {
	for range min(b.N, 1) {
		for line := range strings.Lines(specOutput(b, "bench", "", 1)) {
			if text, ok := strings.CutPrefix(line, "bench "); ok {
				fmt.Print(text)
			}
		}
	}
}

// BenchmarkRequest measures the CPU time of a worker for a proxied request:
// with nginx's own upstream, with balance(), and with guard() and log() too.
// Interleaved rounds; the median of the rounds, and the range.
func BenchmarkRequest(b *testing.B) {
	address, _ := coldBackend(b, 0)
	location := func(path, upstream, more string) string {
		return fmt.Sprintf("location /%s { proxy_pass http://%s/; proxy_http_version 1.1; proxy_set_header Connection ''; %s }\n",
			path, upstream, more)
	}
	p := startProxy(b, proxyOptions{
		init: options(", keepalive = 16") + ` spinguard.upstream("guarded", { keepalive = 16 })`, upstream: "keepalive 16;",
		http: "upstream static { server " + address + `; keepalive 16; }
			upstream plain { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("plain") } keepalive 16; }
			upstream guarded { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("guarded") } keepalive 16; }`,
		server: location("static", "static", "") + location("plain", "plain", "") +
			location("guarded", "guarded", strings.ReplaceAll(phases, "backend", "guarded")),
	})
	variants := []string{"static", "plain", "guarded"}
	for _, name := range variants[1:] {
		if code, _ := p.put(name, fmt.Sprintf("[%q]", address)); code != 200 {
			b.Fatalf("publish: status %d", code)
		}
	}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer web.CloseIdleConnections()
	const requests, rounds = 3000, 9
	times := map[string][]float64{}
	for range min(b.N, 1) * rounds {
		for _, name := range variants {
			before := cpuTime(b, p.workers()[0])
			paced(requests, 1_000_000, func(int) {
				if code, _ := ask(web, "GET", fmt.Sprintf("http://127.0.0.1:%d/%s", p.port, name), ""); code != 200 {
					b.Errorf("%s: status %d", name, code)
				}
			})
			times[name] = append(times[name], float64(cpuTime(b, p.workers()[0])-before)/requests/1000)
		}
	}
	for _, name := range variants {
		slices.Sort(times[name])
		b.ReportMetric(times[name][rounds/2], name+"-us")
		fmt.Printf("bench worker CPU a request, %-8s %.1f us (%.1f to %.1f)\n", name, times[name][rounds/2], times[name][0], times[name][rounds-1])
	}
}

// cpuTime returns the CPU time of a process in nanoseconds.
func cpuTime(b *testing.B, pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Skip(err)
	}
	var ns int64
	if _, err := fmt.Sscan(string(data), &ns); err != nil {
		b.Fatal(err)
	}
	return ns
}
