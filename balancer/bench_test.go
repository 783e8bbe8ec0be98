package balancer

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
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
// with nginx's own upstream, with balance(), with guard() and log() too, and
// with every bound that all workers share. Interleaved rounds; the median of
// the rounds, and the range.
func BenchmarkRequest(b *testing.B) {
	address, _ := coldBackend(b, 0)
	location := func(path, upstream, more string) string {
		return fmt.Sprintf("location /%s { proxy_pass http://%s/; proxy_http_version 1.1; proxy_set_header Connection ''; %s }\n",
			path, upstream, more)
	}
	p := startProxy(b, proxyOptions{
		init: options(", keepalive = 16") + ` spinguard.upstream("guarded", { keepalive = 16 })
			spinguard.upstream("bounded", { keepalive = 16, rate = 1e6, max_inflight = 1000, max_new = 1e5 })`, upstream: "keepalive 16;",
		http: "upstream static { server " + address + `; keepalive 16; }
			upstream plain { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("plain") } keepalive 16; }
			upstream bounded { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("bounded") } keepalive 16; }
			upstream guarded { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("guarded") } keepalive 16; }`,
		server: location("static", "static", "") + location("plain", "plain", "") +
			location("guarded", "guarded", strings.ReplaceAll(phases, "backend", "guarded")) +
			location("bounded", "bounded", strings.ReplaceAll(phases, "backend", "bounded")),
	})
	variants := []string{"static", "plain", "guarded", "bounded"}
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

// BenchmarkIdleUpstreams measures what upstreams cost that have no requests:
// the CPU time of a worker that has 1,000 of them, never used or each used
// once, beside one that has none; for a request of another upstream, and for a
// second without any. Interleaved rounds in one run; medians and ranges.
func BenchmarkIdleUpstreams(b *testing.B) {
	const requests, rounds, idle = 1000, 31, 1000
	names := []string{"none", "never used", "each used once"}
	proxies := []*proxy{crowd(b, 1, false), crowd(b, idle, false), crowd(b, idle, true)}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer web.CloseIdleConnections()
	ratios, still := make([][]float64, len(proxies)), make([][]float64, len(proxies))
	for round := range min(b.N, 1) * rounds {
		cost := make([]float64, len(proxies))
		for k := range proxies {
			i := (k + round) % len(proxies) // each goes first as often as the others
			before := cpuTime(b, proxies[i].workers()[0])
			paced(requests, 1_000_000, func(int) {
				if code, _ := ask(web, "GET", fmt.Sprintf("http://127.0.0.1:%d/many?u=u0", proxies[i].port), ""); code != 200 {
					b.Errorf("status %d", code)
				}
			})
			cost[i] = float64(cpuTime(b, proxies[i].workers()[0]) - before)
		}
		for i := range proxies {
			ratios[i] = append(ratios[i], cost[i]/cost[0])
		}
		if round%4 == 0 {
			for i, us := range idleSecond(b, proxies) {
				still[i] = append(still[i], us)
			}
		}
	}
	for i, name := range names {
		slices.Sort(ratios[i])
		slices.Sort(still[i])
		n, m := len(ratios[i]), len(still[i])
		fmt.Printf("bench %d idle upstreams, %-15s CPU a request x%.3f (%.3f to %.3f), of a second without any %.0f us (%.0f to %.0f)\n",
			idle, name+":", ratios[i][n/2], ratios[i][0], ratios[i][n-1], still[i][m/2], still[i][0], still[i][m-1])
	}
	b.ReportMetric(ratios[1][len(ratios[1])/2], "ratio")
}

// idleSecond returns the CPU time of each proxy's worker in a second without
// requests, in microseconds.
func idleSecond(b *testing.B, proxies []*proxy) []float64 {
	at := make([]float64, len(proxies))
	for i, p := range proxies {
		at[i] = float64(cpuTime(b, p.workers()[0]))
	}
	time.Sleep(time.Second)
	for i, p := range proxies {
		at[i] = (float64(cpuTime(b, p.workers()[0])) - at[i]) / 1000
	}
	return at
}

// crowd is a proxy with n upstreams. Its worker has served the first, or all.
func crowd(b *testing.B, n int, all bool) *proxy {
	address, _ := coldBackend(b, 0)
	p := startProxy(b, proxyOptions{
		dict: "16m", server: "location /many { proxy_pass http://many/; proxy_http_version 1.1; proxy_set_header Connection ''; }",
		http: `upstream many { server 0.0.0.1; balancer_by_lua_block { spinguard.balance(ngx.var.arg_u) } keepalive 16; }`,
	})
	for i := range n {
		if code, _ := p.put(fmt.Sprintf("u%d", i), fmt.Sprintf(`[%q,{"address":%q,"weight":0}]`, address, "127.0.0.1:9")); code != 200 {
			b.Fatalf("publish: status %d", code)
		}
		if !all && i > 0 {
			continue
		}
		if code, _ := p.get(fmt.Sprintf("/many?u=u%d", i)); code != 200 {
			b.Fatalf("upstream %d: status %d", i, code)
		}
	}
	return p
}
