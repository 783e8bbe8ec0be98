package balancer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// put publishes without failing the test: a killed worker cuts the answer.
func (p *proxy) put(name, body string) (int, float64) {
	req, _ := http.NewRequest("PUT", fmt.Sprintf("http://127.0.0.1:%d/upstreams/%s", p.admin, name), strings.NewReader(body))
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, 0
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	var v struct{ Version float64 }
	_ = json.Unmarshal(b, &v)
	return resp.StatusCode, v.Version
}

// Several publishers and many requests at once: each accepted update has its
// own number, none is lost, and nobody is served by what was refused.
func TestManyUpdatesWhileServing(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2})
	p.publish(1, 1, 0)
	var wg sync.WaitGroup
	var accepted, failed atomic.Int64
	var mu sync.Mutex
	versions := map[float64]bool{}
	const publishers, updates = 4, 100
	for w := range publishers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range updates {
				// The third peer only ever comes with a weight that is refused.
				if code, _ := p.put("backend", p.peers(1, 1, -1)); code != 422 {
					t.Errorf("poison: status %d", code)
				}
				code, v := p.put("backend", p.peers(1+w, 1+i, 0))
				if code != 200 {
					t.Errorf("update: status %d", code)
					continue
				}
				accepted.Add(1)
				mu.Lock()
				versions[v] = true
				mu.Unlock()
			}
		}()
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				code, body := p.get("/")
				if code != 200 || body == fmt.Sprint(p.ports[2]) {
					failed.Add(1)
				}
			}
		}()
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d requests failed or were served by a refused peer", failed.Load())
	}
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	newest := v["published"].(float64)
	// Two publishers with the same peers in a row share a version.
	if int(newest) != len(versions)+1 && !versions[1] {
		t.Errorf("%d versions were answered, the newest is %v", len(versions), newest)
	}
	for n := 2.0; n <= newest; n++ {
		if !versions[n] {
			t.Errorf("version %v belongs to no update", n)
		}
	}
	if kept := len(v["versions"].([]any)); kept != 6 {
		t.Errorf("%d versions are kept, want the newest and 5", kept)
	}
}

// Workers are killed in mid-update: what is there is whole, numbers go on.
func TestWorkerKilledInMidUpdate(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2})
	p.publish(1, 1, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			p.put("backend", p.peers(1+i, 1, 1))
		}
	}()
	for range 8 {
		time.Sleep(5 * time.Millisecond)
		if w := p.workers(); len(w) > 0 {
			_ = unix.Kill(w[0], unix.SIGKILL)
		}
	}
	<-done
	p.client.CloseIdleConnections()
	eventually(t, "an accepted update", func() bool { code, _ := p.put("backend", p.peers(7, 7, 7)); return code == 200 })
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	for _, version := range v["versions"].([]any) {
		if n := len(version.(map[string]any)["peers"].([]any)); n != 3 {
			t.Errorf("a version with %d peers: %v", n, version)
		}
	}
	p.served(16)
}

func TestFullDict(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2, dict: "64k"})
	p.publish(1, 1)
	full := 0
	for i := range 400 {
		code, _ := p.put(fmt.Sprintf("u%d", i), p.peers(1, 1))
		if code == 507 {
			full++
		} else if code != 200 {
			t.Fatalf("upstream %d: status %d", i, code)
		}
	}
	if full == 0 {
		t.Fatal("the dict never filled")
	}
	p.served(8)
	_, v := p.adminRequest("GET", "/upstreams", "")
	for _, name := range v["upstreams"].([]any) {
		code, _ := p.adminRequest("GET", "/upstreams/"+name.(string), "")
		if code != 200 && code != 404 {
			t.Errorf("upstream %v: status %d", name, code)
		}
	}
	if code, _ := p.adminRequest("GET", "/upstreams/u0", ""); code != 200 {
		t.Errorf("the first upstream was lost: status %d", code)
	}
}
