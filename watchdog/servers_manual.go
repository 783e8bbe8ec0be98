package watchdog

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
)

// addHold takes a server out by hand. The session with HAProxy runs on the
// caller's goroutine, so that the loop does not wait for it.
func (a *Agent) addHold(r api.QuarantineRequest) (api.Quarantine, error) {
	var h *serverHold
	var addresses []string
	var told serverHold
	err := a.ask(func() error {
		in, err := a.haproxyNamed(r.Proxy)
		if err != nil {
			return err
		}
		if len(a.holds) >= holdsMax {
			return fmt.Errorf("%w: %d servers are held already", web.ErrRefused, len(a.holds))
		}
		now := a.clock.wall()
		length := a.cfg.Rails.QuarantineBase
		if r.Seconds > 0 {
			length = time.Duration(r.Seconds * float64(time.Second))
		}
		pid, start := in.worker()
		h = &serverHold{
			ID: holdID(), Proxy: in.Name, Sockets: in.StatsSock, Backend: r.Upstream, Server: r.Server, Since: now.Round(0), Until: now.Add(length).Round(0),
			By: "operator", Reason: "by hand: " + r.Reason, Origin: a.cfg.Node, PID: pid, Start: start, Pending: true, busy: true, How: a.cfg.HAProxy.Quarantine,
		}
		addresses, told = h.addresses(in), *h
		a.holds = append(a.holds, h)
		if err = a.saveHolds(); err != nil {
			a.dropHold(h)
		}
		return err
	})
	if err != nil {
		return api.Quarantine{}, err
	}
	weight, failure := takeOut(addresses, told)
	err = a.ask(func() error {
		h.busy, h.Pending, h.Weight = false, false, weight
		if failure != nil {
			a.dropHold(h)
		} else {
			a.metrics.IncQuarantine(h.Proxy)
			a.log.Warn("quarantined by hand", zap.String("id", h.ID), zap.String("backend", h.Backend), zap.String("server", h.Server), zap.String("reason", r.Reason))
		}
		a.logSave()
		return nil
	})
	if failure != nil {
		return api.Quarantine{}, fmt.Errorf("%w: %v", web.ErrRefused, failure)
	}
	return h.view(), err
}

func (a *Agent) haproxyNamed(name string) (*instance, error) {
	var found *instance
	for _, in := range a.instances {
		if !in.canHold() || name != "" && in.Name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several HAProxy processes have a stats socket; name one", web.ErrRefused)
		}
		found = in
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no HAProxy %q with a stats socket", web.ErrRefused, name)
	}
	return found, nil
}
