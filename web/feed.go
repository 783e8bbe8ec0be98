package web

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spinguard/spinguard/web/api"
)

const (
	feedKept = 200 // events that a page that is opened now still sees
	feedMost = 64  // listeners at once
)

// errBusy says that there are too many listeners.
var errBusy = errors.New("too many feeds are open; close a page")

// Feed spreads events to everyone who listens. The zero value is ready; its
// methods may be called by many goroutines. Publish never waits: a listener
// that is too slow loses events, not the agent its time.
type Feed struct {
	mu     sync.Mutex
	recent []api.Event
	subs   map[chan api.Event]struct{}
}

// Publish sends an event to all listeners.
func (f *Feed) Publish(e api.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) == feedKept {
		f.recent = slices.Delete(f.recent, 0, 1)
	}
	f.recent = append(f.recent, e)
	for c := range f.subs {
		select {
		case c <- e:
		default:
		}
	}
}

// Recent returns the last events, oldest first.
func (f *Feed) Recent() []api.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.recent)
}

// Subscribe returns the recent events and a channel of those that follow,
// closed once ctx is done. More than 64 listeners at once are refused.
func (f *Feed) Subscribe(ctx context.Context) ([]api.Event, <-chan api.Event, error) {
	c := make(chan api.Event, 64)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subs) >= feedMost {
		return nil, nil, errBusy
	}
	if f.subs == nil {
		f.subs = map[chan api.Event]struct{}{}
	}
	f.subs[c] = struct{}{}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, c)
		close(c)
	})
	return slices.Clone(f.recent), c, nil
}
