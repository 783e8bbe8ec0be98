package watchdog

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/watchdog/respond"
	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
)

// Add makes a quarantine by hand. It implements web.Source.
func (a *Agent) Add(r api.QuarantineRequest) (api.Quarantine, error) {
	if r.Server != "" {
		return a.addHold(r)
	}
	var made api.Quarantine
	err := a.ask(func() error {
		in, err := a.instanceNamed(r.Proxy)
		if err != nil {
			return err
		}
		entry, err := manualEntry(r, a.cfg.Rails.QuarantineBase, a.clock.wall())
		if err != nil {
			return fmt.Errorf("%w: %v", web.ErrRefused, err)
		}
		entry.Origin = a.cfg.Node
		if entry, err = in.ledger.Add(entry, a.clock.wall()); err != nil {
			return fmt.Errorf("%w: %v", web.ErrRefused, err)
		}
		in.readAt = 0
		made = quarantineView(in, entry)
		made.By = "operator"
		a.metrics.IncQuarantine(in.Name)
		a.log.Warn("quarantined by hand", zap.String("id", entry.ID), zap.String("upstream", entry.Upstream), zap.String("reason", r.Reason))
		return nil
	})
	return made, err
}

func (a *Agent) instanceNamed(name string) (*instance, error) {
	var found *instance
	for _, in := range a.instances {
		if in.ledger == nil || (name != "" && in.Name != name) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several proxies have a ledger; name one", web.ErrRefused)
		}
		found = in
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no proxy %q whose balancer reads a ledger", web.ErrRefused, name)
	}
	return found, nil
}

func manualEntry(r api.QuarantineRequest, length time.Duration, now time.Time) (balancer.Entry, error) {
	if r.Seconds > 0 {
		length = time.Duration(r.Seconds * float64(time.Second))
	}
	e := balancer.Entry{Upstream: r.Upstream, Until: now.Add(length), Reason: "by hand: " + r.Reason}
	switch {
	case r.Version != "":
		version, err := strconv.ParseUint(r.Version, 10, 64)
		if err != nil {
			return e, fmt.Errorf("version %q is not a number", r.Version)
		}
		e.Kind, e.Version = balancer.KindVersion, version
	case r.Peer != "":
		e.Kind, e.Subject = balancer.KindPeer, r.Peer
	case r.Route != "":
		e.Kind, e.Subject = balancer.KindRoute, r.Route
	default:
		return e, errors.New("none of version, peer, route is named")
	}
	return e, nil
}

// Lift ends a quarantine by hand: the agent does not make it again on its own.
// It implements web.Source.
func (a *Agent) Lift(id, reason string) error {
	return a.ask(func() error {
		if a.liftHold(id, reason) {
			return nil
		}
		for _, in := range a.instances {
			if in.ledger == nil {
				continue
			}
			in.readAt = 0
			for _, entry := range in.quarantines(a.clock.wall(), a.clock.mono(), a.log) {
				if entry.ID == id {
					return a.lift(in, entry, reason)
				}
			}
		}
		return fmt.Errorf("%w: no quarantine %q is in force", web.ErrNotFound, id)
	})
}

func (a *Agent) lift(in *instance, entry balancer.Entry, reason string) error {
	if _, err := in.ledger.Lift(entry.ID, a.clock.wall()); err != nil {
		return err
	}
	in.readAt = 0
	if len(a.manual) < 1024 {
		a.manual[liftKey(culpritIn(in, entry))] = true
	}
	a.log.Warn("quarantine lifted by hand", zap.String("id", entry.ID), zap.String("upstream", entry.Upstream), zap.String("reason", reason))
	a.feed.Publish(api.Event{At: a.clock.wall(), Kind: "lifted", Proxy: in.Name, Text: fmt.Sprintf("%s: %s", entry.Upstream, reason)})
	return nil
}

// culpritIn returns what an entry of the ledger refuses.
func culpritIn(in *instance, e balancer.Entry) respond.Culprit {
	c := respond.Culprit{Proxy: in.Name, Upstream: e.Upstream}
	if e.Kind == balancer.KindRoute {
		c.Route = e.Subject
	} else {
		c.Version = strconv.FormatUint(e.Version, 10)
	}
	return c
}

// ownMemory returns the resident bytes of the agent.
func ownMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
