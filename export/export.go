// Package export pushes the profiles of incidents to a Pyroscope-compatible
// receiver and to one of OTLP profiles, each from a bounded spool on disk while
// it is away.
package export

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/spool"
)

// Options configure an Exporter.
type Options struct {
	Dir           string // folder of the spools
	Pyroscope     string // base URL; empty: not there
	OTLP          string // base URL; empty: not there
	Name          string // of the application
	Authorization string // file with the Authorization header
	Log           *zap.Logger
	Pause         func(failures int) time.Duration // between attempts; nil: the spool's own
}

// What waits at most. A profile has some 5 to 200 KB.
const (
	maxItems = 200
	maxBytes = 64 << 20

	maxMemory = 8 << 20 // of that, while the disk takes nothing
)

// Exporter pushes profiles. All methods may be called on nil, which pushes
// nothing, and from any goroutine.
type Exporter struct {
	o         Options
	receivers []*receiver
	queue     chan entry
	stop      context.CancelFunc
	done      sync.WaitGroup
}

// receiver is one that profiles are pushed to, with its spool.
type receiver struct {
	name  string
	spool *spool.Spool
	send  sender
}

type sender func(ctx context.Context, h head, pprof []byte) error

type entry struct {
	key  string
	data []byte
}

// head is the first line of a spooled profile; the pprof bytes follow it.
type head struct {
	Name  string `json:"name"` // application and labels
	From  int64  `json:"from"` // seconds since 1970
	Until int64  `json:"until"`
	Rate  int    `json:"rate"` // samples a second

	App    string            `json:"app"`
	Labels map[string]string `json:"labels"`
	Began  int64             `json:"began"` // nanoseconds since 1970
	Ended  int64             `json:"ended"`
}

// New opens the spool and starts to push. It returns nil without a receiver.
// Close it.
func New(o Options) *Exporter {
	x := &Exporter{o: o, queue: make(chan entry, 16)}
	if o.Pyroscope != "" {
		x.receivers = append(x.receivers, &receiver{name: "pyroscope", send: x.toPyroscope()})
	}
	if o.OTLP != "" {
		x.receivers = append(x.receivers, &receiver{name: "otlp", send: x.toOTLP()})
	}
	if len(x.receivers) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.stop = cancel
	for _, r := range x.receivers {
		var err error
		r.spool, err = spool.Open(filepath.Join(o.Dir, r.name), spool.Limits{Items: maxItems, Bytes: maxBytes, Memory: maxMemory, Pause: o.Pause})
		if err != nil {
			o.Log.Error("profiles wait in memory only", zap.String("receiver", r.name), zap.Error(err))
		}
		x.done.Go(func() { r.spool.Run(ctx, r.deliver, x.report(r.name)) })
	}
	x.done.Go(func() { x.take(ctx) })
	return x
}

// Close stops pushing; what waits stays on disk for the next New.
func (x *Exporter) Close() {
	if x == nil {
		return
	}
	x.stop()
	x.done.Wait()
}

// Push queues the gzipped pprof profile of an incident, which ran until at. It
// does not block, and keeps pprof.
func (x *Exporter) Push(inc *incident.Incident, pprof []byte, at time.Time) {
	if x == nil || len(pprof) == 0 {
		return
	}
	h, err := json.Marshal(head{
		Name: name(x.o.Name, inc), From: inc.Began.Unix(), Until: max(at.Unix(), inc.Began.Unix()+1), Rate: inc.Samples.RateHz,
		App: x.o.Name, Labels: labels(inc), Began: inc.Began.UnixNano(), Ended: at.UnixNano(),
	})
	if err != nil {
		x.o.Log.Error("profile could not be queued", zap.Error(err))
		return
	}
	select {
	case x.queue <- entry{inc.ID, append(append(h, '\n'), pprof...)}:
	default:
		for _, r := range x.receivers {
			r.spool.Refuse()
		}
		x.o.Log.Error("too many profiles at once: one is not exported", zap.String("incident", inc.ID))
	}
}

// take moves profiles into the spool, also those that are left at the end.
func (x *Exporter) take(ctx context.Context) {
	put := func(e entry) {
		for _, r := range x.receivers {
			if err := r.spool.Put(e.key, e.data); err != nil {
				x.o.Log.Warn("profile not on disk", zap.String("receiver", r.name), zap.Error(err))
			}
		}
	}
	for {
		select {
		case e := <-x.queue:
			put(e)
		case <-ctx.Done():
			for len(x.queue) > 0 {
				put(<-x.queue)
			}
			return
		}
	}
}

// deliver reads a spooled profile and sends it.
func (r *receiver) deliver(ctx context.Context, _ string, data []byte) error {
	line, pprof, ok := bytes.Cut(data, []byte("\n"))
	var h head
	if err := json.Unmarshal(line, &h); err != nil || !ok {
		return &spool.ReplyError{Final: true, Text: "profile on disk: no first line"}
	}
	return r.send(ctx, h, pprof)
}

// Spools returns what waits for each receiver, and what became of the rest.
func (x *Exporter) Spools() (list []spool.State) {
	if x == nil {
		return nil
	}
	for _, r := range x.receivers {
		list = append(list, spool.State{Receiver: r.name, Counts: r.spool.Counts()})
	}
	return list
}

func (x *Exporter) report(name string) func(string, error, bool) {
	return func(key string, err error, dropped bool) {
		if dropped {
			x.o.Log.Error("profile given up", zap.String("receiver", name), zap.String("incident", key), zap.Error(err))
			return
		}
		x.o.Log.Warn("profile not delivered yet", zap.String("receiver", name), zap.String("incident", key), zap.Error(err))
	}
}
