package drill

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// nightBackend is a peer with a limited capacity. Requests queue, and are worked
// on also when nobody waits for them any more.
type nightBackend struct {
	addr  string
	takes time.Duration
	slots int

	mu       sync.Mutex
	srv      *http.Server
	free     []time.Time // when each slot is free again
	requests int
	opened   []time.Time
}

func (b *nightBackend) start() error {
	ln, err := net.Listen("tcp", b.addr)
	// Some program that looks for free ports may just be trying this one.
	for i := 0; err != nil && i < 50; i++ {
		time.Sleep(10 * time.Millisecond)
		ln, err = net.Listen("tcp", b.addr)
	}
	if err != nil {
		return fmt.Errorf("backend: %w", err)
	}
	srv := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, ConnState: b.state}
	b.mu.Lock()
	b.srv = srv
	b.free = make([]time.Time, b.slots)
	b.mu.Unlock()
	go func() { _ = srv.Serve(ln) }()
	return nil
}

// stop closes the listener and all connections; it may be called twice.
func (b *nightBackend) stop() {
	b.mu.Lock()
	srv := b.srv
	b.mu.Unlock()
	_ = srv.Close()
}

func (b *nightBackend) state(_ net.Conn, s http.ConnState) {
	if s != http.StateNew {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, time.Now())
}

func (b *nightBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/bad") {
		panic(http.ErrAbortHandler) // closes the connection without a word
	}
	time.Sleep(time.Until(b.reserve(time.Now())))
	answer(w, r)
}

// reserve returns when a request that comes now will be done.
func (b *nightBackend) reserve(now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if b.slots == 0 {
		return now.Add(b.takes)
	}
	first := 0
	for i, t := range b.free {
		if t.Before(b.free[first]) {
			first = i
		}
	}
	done := now
	if b.free[first].After(now) {
		done = b.free[first]
	}
	b.free[first] = done.Add(b.takes)
	return b.free[first]
}

func (b *nightBackend) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests, b.opened = 0, nil
}

// counts returns the requests so far, and the most connections in any second.
func (b *nightBackend) counts() (requests, connections int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := 0
	for i, t := range b.opened {
		for t.Sub(b.opened[first]) >= time.Second {
			first++
		}
		connections = max(connections, i-first+1)
	}
	return b.requests, connections
}
