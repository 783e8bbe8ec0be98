// Package export pushes the profiles of incidents to a Pyroscope-compatible
// receiver, from a bounded spool on disk while it is away.
package export

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/spool"
)

// Options configure an Exporter.
type Options struct {
	Dir           string // folder of the spool
	Pyroscope     string // base URL; empty: nothing is exported
	Name          string // of the application
	Authorization string // file with the Authorization header
	Log           *zap.Logger
	Pause         func(failures int) time.Duration // between attempts; nil: the spool's own
}

// What waits at most. A profile has some 5 to 200 KB.
const (
	maxItems = 200
	maxBytes = 64 << 20
)

// Exporter pushes profiles. All methods may be called on nil, which pushes
// nothing, and from any goroutine.
type Exporter struct {
	o     Options
	spool *spool.Spool
	queue chan entry
	stop  context.CancelFunc
	done  sync.WaitGroup
}

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
}

// New opens the spool and starts to push. It returns nil without a receiver.
// Close it.
func New(o Options) *Exporter {
	if o.Pyroscope == "" {
		return nil
	}
	s, err := spool.Open(filepath.Join(o.Dir, "pyroscope"), spool.Limits{Items: maxItems, Bytes: maxBytes, Pause: o.Pause})
	if err != nil {
		o.Log.Error("profiles wait in memory only", zap.Error(err))
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &Exporter{o: o, spool: s, queue: make(chan entry, 16), stop: cancel}
	x.done.Go(func() { s.Run(ctx, x.deliverer(), x.report) })
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
	h, err := json.Marshal(head{Name: name(x.o.Name, inc), From: inc.Began.Unix(), Until: max(at.Unix(), inc.Began.Unix()+1), Rate: inc.Samples.RateHz})
	if err != nil {
		x.o.Log.Error("profile could not be queued", zap.Error(err))
		return
	}
	select {
	case x.queue <- entry{inc.ID, append(append(h, '\n'), pprof...)}:
	default:
		x.o.Log.Error("too many profiles at once: one is not exported", zap.String("incident", inc.ID))
	}
}

// take moves profiles into the spool, also those that are left at the end.
func (x *Exporter) take(ctx context.Context) {
	put := func(e entry) {
		if err := x.spool.Put(e.key, e.data); err != nil {
			x.o.Log.Warn("profile not on disk", zap.Error(err))
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

// deliverer posts to /ingest, with the profile as the body.
func (x *Exporter) deliverer() spool.Delivery {
	p := spool.NewPoster(x.o.Authorization)
	base := strings.TrimRight(x.o.Pyroscope, "/") + "/ingest?"
	return func(ctx context.Context, _ string, data []byte) error {
		line, pprof, ok := bytes.Cut(data, []byte("\n"))
		var h head
		if err := json.Unmarshal(line, &h); err != nil || !ok {
			return &spool.ReplyError{Final: true, Text: "profile on disk: no first line"}
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+h.query(), bytes.NewReader(pprof))
		if err != nil {
			return &spool.ReplyError{Final: true, Text: "the URL can't be used"}
		}
		r.Header.Set("Content-Type", "binary/octet-stream")
		return p.Post(r)
	}
}

func (h head) query() string {
	q := url.Values{"name": {h.Name}, "from": {strconv.FormatInt(h.From, 10)}, "until": {strconv.FormatInt(h.Until, 10)}, "format": {"pprof"}, "spyName": {"spinguard"}}
	if h.Rate > 0 {
		q.Set("sampleRate", strconv.Itoa(h.Rate))
	}
	return q.Encode()
}

func (x *Exporter) report(key string, err error, dropped bool) {
	if dropped {
		x.o.Log.Error("profile given up", zap.String("incident", key), zap.Error(err))
		return
	}
	x.o.Log.Warn("profile not delivered yet", zap.String("incident", key), zap.Error(err))
}
