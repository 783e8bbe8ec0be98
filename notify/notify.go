// Package notify tells a webhook and an Alertmanager about incidents: once
// each, in order, and from a bounded spool on disk while the receiver is away.
package notify

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/spool"
)

// Options configure a Notifier. A receiver whose URL is empty gets nothing.
type Options struct {
	Dir           string // folder of the spools
	Webhook       string
	Alertmanager  string // base URL
	Page          string // base URL of the links
	Authorization string // file with the Authorization header
	Log           *zap.Logger
	Pause         func(failures int) time.Duration // between attempts; nil: the spool's own
}

// What waits for one receiver at most. An event has some 1 to 4 KB.
const (
	maxItems = 1000
	maxBytes = 8 << 20
)

// repeatEvery is how often an open incident's alert is sent again;
// Alertmanager takes one that is not for ended.
const repeatEvery = time.Minute

// Notifier tells of incidents. All methods may be called on nil, which tells
// nobody. Tell never blocks, and any goroutine may call it.
type Notifier struct {
	o         Options
	receivers []*receiver
	events    chan Event
	stop      context.CancelFunc
	done      sync.WaitGroup

	mu   sync.Mutex
	told map[string]bool  // keys
	open map[string]Event // by incident: the alerts that are repeated
}

// receiver is one that is told, with its spool.
type receiver struct {
	name  string
	spool *spool.Spool
	send  func(context.Context, Event) error
}

// New opens the spools and starts to deliver. It returns nil without a
// receiver. Close it.
func New(o Options) *Notifier {
	if o.Webhook == "" && o.Alertmanager == "" {
		return nil
	}
	o.Page = strings.TrimRight(o.Page, "/")
	n := &Notifier{o: o, events: make(chan Event, 256), told: map[string]bool{}, open: map[string]Event{}}
	if o.Webhook != "" {
		n.receivers = append(n.receivers, &receiver{name: "webhook", send: webhook(o)})
	}
	if o.Alertmanager != "" {
		n.receivers = append(n.receivers, &receiver{name: "alertmanager", send: alertmanager(o, time.Now)})
	}
	for _, r := range n.receivers {
		var err error
		if r.spool, err = spool.Open(filepath.Join(o.Dir, r.name), spool.Limits{Items: maxItems, Bytes: maxBytes, Pause: o.Pause}); err != nil {
			o.Log.Error("events wait in memory only", zap.String("receiver", r.name), zap.Error(err))
		}
	}
	n.start()
	return n
}

func (n *Notifier) start() {
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	for _, r := range n.receivers {
		n.done.Go(func() { r.spool.Run(ctx, r.deliver, n.report(r.name)) })
	}
	n.done.Go(func() { n.take(ctx) })
	n.done.Go(func() { n.repeat(ctx, time.NewTicker(repeatEvery).C) })
}

// Close stops delivering; what waits stays on disk for the next New.
func (n *Notifier) Close() {
	if n == nil {
		return
	}
	n.stop()
	n.done.Wait()
}

// Tell says that something happened to an incident. Each kind is told once per
// incident. It copies what it needs of inc.
func (n *Notifier) Tell(kind Kind, inc *incident.Incident, at time.Time) {
	if n == nil {
		return
	}
	e := newEvent(kind, inc, at, n.o.Page)
	if !n.remember(&e) {
		return
	}
	select {
	case n.events <- e:
	default:
		for _, r := range n.receivers {
			r.spool.Refuse()
		}
		n.o.Log.Error("too many events at once: one is not told", zap.String("event", e.Key))
	}
}

// Spools returns what waits for each receiver, and what became of the rest.
func (n *Notifier) Spools() (list []spool.State) {
	if n == nil {
		return nil
	}
	for _, r := range n.receivers {
		list = append(list, spool.State{Receiver: r.name, Counts: r.spool.Counts()})
	}
	return list
}

// remember says that the event is new, and keeps who is open.
func (n *Notifier) remember(e *Event) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told[e.Key] {
		return false
	}
	if len(n.told) > 10_000 {
		clear(n.told) // a repeated event has the same key for its receiver
	}
	n.told[e.Key] = true
	e.WasRefused = e.Kind == Refused || n.open[e.Incident].WasRefused
	if e.Kind == Ended {
		delete(n.open, e.Incident)
		return true
	}
	n.open[e.Incident] = *e
	return true
}

// take moves events into the spools, also those that are left at the end.
func (n *Notifier) take(ctx context.Context) {
	for {
		select {
		case e := <-n.events:
			n.put(e)
		case <-ctx.Done():
			for {
				select {
				case e := <-n.events:
					n.put(e)
				default:
					return
				}
			}
		}
	}
}

func (n *Notifier) put(e Event) {
	data, err := json.Marshal(e)
	if err != nil {
		n.o.Log.Error("event could not be encoded", zap.String("event", e.Key), zap.Error(err))
		return
	}
	for _, r := range n.receivers {
		if err := r.spool.Put(e.Key, data); err != nil {
			n.o.Log.Warn("event not on disk", zap.String("receiver", r.name), zap.Error(err))
		}
	}
}

func (r *receiver) deliver(ctx context.Context, _ string, data []byte) error {
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		return &spool.ReplyError{Final: true, Text: "event on disk: " + err.Error()}
	}
	return r.send(ctx, e)
}

func (n *Notifier) report(name string) func(string, error, bool) {
	return func(key string, err error, dropped bool) {
		if dropped {
			n.o.Log.Error("event given up", zap.String("receiver", name), zap.String("event", key), zap.Error(err))
			return
		}
		n.o.Log.Warn("event not delivered yet", zap.String("receiver", name), zap.String("event", key), zap.Error(err))
	}
}
