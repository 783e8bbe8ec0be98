package export

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/spool"
)

// toPyroscope posts to /ingest, with the profile as the body.
func (x *Exporter) toPyroscope() sender {
	p := spool.NewPoster(x.o.Authorization)
	base := strings.TrimRight(x.o.Pyroscope, "/") + "/ingest?"
	return func(ctx context.Context, h head, pprof []byte) error {
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
