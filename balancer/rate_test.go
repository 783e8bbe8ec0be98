package balancer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// paced calls f n times, rate times a second, from several goroutines, and
// returns how fast it really was. What is late is made up for.
func paced(n, rate int, f func(i int)) float64 {
	const hands = 8
	begun := time.Now()
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			for i := h; i < n; i += hands {
				time.Sleep(time.Until(begun.Add(time.Second * time.Duration(i) / time.Duration(rate))))
				f(i)
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(begun).Seconds()
}

func ask(web *http.Client, method, url, body string) (int, []byte) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	resp, err := web.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, b
}

// A thousand updates a second beside a thousand requests a second: every
// update that was accepted is a version of its own, one in ten is poison and
// is refused, every request is served and none by what was refused, and the
// last update is the one that serves.
func TestThousandUpdatesASecond(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2})
	p.publish(1, 1, 0)
	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer web.CloseIdleConnections()
	const n, rate = 2000, 1000
	versions := make([]uint64, n)
	var updates, requests float64
	var wg sync.WaitGroup
	wg.Go(func() {
		updates = paced(n, rate, func(i int) {
			url := fmt.Sprintf("http://127.0.0.1:%d/upstreams/backend", p.admin)
			if i%10 == 9 {
				if code, _ := ask(web, "PUT", url, p.peers(1, -1, 60000)); code != 422 {
					t.Errorf("poison %d: status %d", i, code)
				}
				return
			}
			code, b := ask(web, "PUT", url, p.peers(1, i+2, 0))
			var v struct{ Version uint64 }
			if err := json.Unmarshal(b, &v); code != 200 || err != nil {
				t.Errorf("update %d: status %d, %v", i, code, err)
			}
			versions[i] = v.Version
		})
	})
	wg.Go(func() {
		requests = paced(n, rate, func(int) {
			if code, b := ask(web, "GET", fmt.Sprintf("http://127.0.0.1:%d/", p.port), ""); code != 200 || string(b) == fmt.Sprint(p.ports[2]) {
				t.Errorf("request: status %d by %s", code, b)
			}
		})
	})
	wg.Wait()
	t.Logf("%.0f updates a second beside %.0f requests a second, over 2 workers", updates, requests)
	seen := map[uint64]bool{}
	for _, v := range versions {
		seen[v] = true
	}
	const accepted = n - n/10
	for v := uint64(2); v < accepted+2; v++ {
		if !seen[v] {
			t.Fatalf("version %d belongs to no update: %d are distinct", v, len(seen))
		}
	}
	p.served(4)
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	if v["published"] != float64(accepted+1) || v["serving"] != float64(accepted+1) {
		t.Errorf("published %v, serving %v, want %d", v["published"], v["serving"], accepted+1)
	}
}
