package goroutines

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Fetch asks the pprof endpoint at base, such as
// "http://127.0.0.1:2019/debug/pprof". A process that is stuck may not answer:
// two seconds are waited.
func Fetch(ctx context.Context, base string) ([]Group, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+"/goroutine?debug=1", nil)
	if err != nil {
		return nil, err
	}
	// No proxy from the environment, no redirect to elsewhere.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("pprof endpoint %s: %s", base, resp.Status)
	}
	return Parse(resp.Body)
}
