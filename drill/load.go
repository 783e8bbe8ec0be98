package drill

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// loadRun is background traffic: clients with keep-alive connections, each of
// which sends its next request after the whole answer to the one before.
type loadRun struct {
	cancel     context.CancelFunc
	wg         sync.WaitGroup
	ok, failed atomic.Int64
}

func (l *lab) startLoad(ctx context.Context) {
	ld := l.c.Load
	if ld == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(ld.Seconds)*time.Second)
	l.loadRun = &loadRun{cancel: cancel}
	url := fmt.Sprintf("http://127.0.0.1:%d%s", l.vars.Port, ld.Path)
	for range ld.Concurrency {
		l.spawn(&l.loadRun.wg, func() { l.loadRun.client(ctx, url) })
	}
}

func (r *loadRun) client(ctx context.Context, url string) {
	tr := &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}
	defer tr.CloseIdleConnections()
	web := &http.Client{Transport: tr, Timeout: 15 * time.Second}
	for ctx.Err() == nil {
		if once(ctx, web, url) {
			r.ok.Add(1)
			continue
		}
		if ctx.Err() == nil { // a request that the end of the load cut off did not fail
			r.failed.Add(1)
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func once(ctx context.Context, web *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	req.Host = "case.test"
	resp, err := web.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

func (r *loadRun) stop() {
	r.cancel()
	r.wg.Wait()
}
