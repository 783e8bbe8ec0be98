package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/spinguard/spinguard/spool"
)

// webhook sends an event as JSON.
func webhook(o Options) func(context.Context, Event) error {
	p := spool.NewPoster(o.Authorization)
	return func(ctx context.Context, e Event) error {
		return post(ctx, p, o.Webhook, e.Key, e)
	}
}

// post sends a value as JSON. The key lets a receiver see what it has already.
func post(ctx context.Context, p *spool.Poster, url, key string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return &spool.ReplyError{Final: true, Text: err.Error()}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return &spool.ReplyError{Final: true, Text: "the URL can't be used"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return p.Post(r)
}
