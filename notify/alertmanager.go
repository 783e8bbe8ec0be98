package notify

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/spool"
)

// alert is what Alertmanager's API v2 takes.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// lives is how long an alert fires without being sent again, the four rounds
// that Prometheus grants its own.
const lives = 4 * repeatEvery

// alerts returns the alerts of an event. Labels are what identifies an alert,
// so they are the same from first to last.
func alerts(e Event, now time.Time) []alert {
	names := map[string]string{"SpinguardIncident": "warning"}
	if e.WasRefused {
		names["SpinguardActionRefused"] = "critical"
	}
	ends := now.Add(lives)
	if e.Ended != nil {
		ends = *e.Ended
	}
	if ends.Before(e.Began) {
		ends = e.Began // the clock was set back; Alertmanager would refuse it
	}
	var list []alert
	for _, name := range []string{"SpinguardIncident", "SpinguardActionRefused"} {
		severity, ok := names[name]
		if !ok {
			continue
		}
		list = append(list, alert{
			Labels: map[string]string{
				"alertname": name, "severity": severity, "node": e.Node, "proxy": e.Proxy, "incident": e.Incident,
			},
			Annotations: map[string]string{
				"summary": e.Story, "description": e.Verdict + ": " + e.Reason, "link": e.Link, "request": e.Request,
				"upstream": strings.TrimSpace(e.Upstream + " " + e.Version), "outcome": string(e.Outcome),
			},
			StartsAt: e.Began, EndsAt: ends, GeneratorURL: e.Link,
		})
	}
	return list
}

// alertmanager sends the alerts of an event. How long they fire is told at the
// time of sending: the event may have waited.
func alertmanager(o Options, now func() time.Time) func(context.Context, Event) error {
	p := spool.NewPoster(o.Authorization)
	url := strings.TrimRight(o.Alertmanager, "/") + "/api/v2/alerts"
	return func(ctx context.Context, e Event) error {
		return post(ctx, p, url, e.Key, alerts(e, now()))
	}
}

// repeat keeps the alerts of open incidents firing.
func (n *Notifier) repeat(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		for _, r := range n.receivers {
			// What waits is sent anyway, with the time of sending.
			if r.name == "alertmanager" && r.spool.Counts().Waiting == 0 {
				n.repeatTo(ctx, r)
			}
		}
	}
}

func (n *Notifier) repeatTo(ctx context.Context, r *receiver) {
	n.mu.Lock()
	open := make([]Event, 0, len(n.open))
	for _, e := range n.open {
		open = append(open, e)
	}
	n.mu.Unlock()
	for _, e := range open {
		if err := r.send(ctx, e); err != nil && ctx.Err() == nil {
			n.o.Log.Warn("alert of an open incident not repeated", zap.String("incident", e.Incident), zap.Error(err))
			return
		}
		n.mu.Lock()
		_, still := n.open[e.Incident]
		n.mu.Unlock()
		if !still && ctx.Err() == nil {
			// It ended while its alert was on the way: the end goes last.
			e.Ended = &e.At
			_ = r.send(ctx, e)
		}
	}
}
