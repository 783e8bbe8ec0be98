package watchdog

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/watchdog/classes"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/respond"
)

// offend counts a request over its budget against its route. A route that
// offends too often is put into quarantine, if the configuration says so.
func (a *Agent) offend(w *worker, k classes.Key) {
	b := a.cfg.RequestBudget
	if b.Offences == 0 || k.Route == "" {
		return
	}
	// A route is refused whatever phase it is in.
	k.Phase, k.Upstream = "", w.libraryName(k.Upstream)
	if a.offences.Add(k, a.clock.mono(), b.Within, b.Offences) {
		a.refuseRoute(w, respond.Culprit{Proxy: k.Proxy, Upstream: k.Upstream, Route: k.Route})
	}
}

// libraryName returns the name if the library knows an upstream by it. The
// name of an nginx upstream may be another; then the route alone must do.
func (w *worker) libraryName(upstream string) string {
	if w.crumb.Active || w.in.upstreams[upstream] {
		return upstream
	}
	return ""
}

// refuseRoute has the proxy's balancer refuse a route, as the rails allow.
func (a *Agent) refuseRoute(w *worker, c respond.Culprit) {
	b := a.cfg.RequestBudget
	why := fmt.Sprintf("%d requests used over %s of CPU each within %s", b.Offences, b.CPU, b.Within)
	now := a.clock.wall()
	entries := w.in.quarantines(now, a.clock.mono(), a.log)
	if routeRefused(entries, c) {
		return // these requests began before it was
	}
	if a.cfg.Mode != config.Enforce {
		a.tellRoute(w, "would_quarantine", c, "mode is observe; "+why)
		return
	}
	until, err := a.routeAllowed(w.in, c, entries, now)
	if err != nil {
		a.metrics.IncRefused(w.in.Name)
		a.tellRoute(w, "refused", c, err.Error())
		return
	}
	_, err = w.in.ledger.Add(balancer.Entry{
		Origin: a.cfg.Node, Kind: balancer.KindRoute, Upstream: c.Upstream, Subject: c.Route, Until: until, Reason: why,
	}, now)
	w.in.readAt = 0
	if err != nil {
		a.tellRoute(w, "failed", c, "the quarantine failed: "+err.Error())
		return
	}
	a.metrics.IncQuarantine(w.in.Name)
	a.tellRoute(w, "quarantined", c, fmt.Sprintf("until %s (%s): %s", until.Format(time.TimeOnly), until.Sub(now).Round(time.Second), why))
}

// routeAllowed asks the rails for the quarantine of a route.
func (a *Agent) routeAllowed(in *instance, c respond.Culprit, entries []balancer.Entry, now time.Time) (time.Time, error) {
	switch {
	case in.ledger == nil:
		return time.Time{}, errors.New("the proxy's balancer reads no ledger, and a hook knows no routes")
	case a.manual[liftKey(c)]:
		return time.Time{}, errors.New("an operator has lifted the quarantine of it: a manual word wins")
	}
	return a.rails.QuarantineRoute(now, c, a.cfg.RequestBudget.Quarantine, a.classes.Routes(in.Name), refusedRoutes(entries, c.Route))
}

// routeRefused says that a route is in quarantine already.
func routeRefused(entries []balancer.Entry, c respond.Culprit) bool {
	for _, e := range entries {
		if e.Kind == balancer.KindRoute && e.Subject == c.Route && (e.Upstream == "" || e.Upstream == c.Upstream) {
			return true
		}
	}
	return false
}

// refusedRoutes counts the other routes that are in quarantine.
func refusedRoutes(entries []balancer.Entry, but string) int {
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Kind == balancer.KindRoute && e.Subject != but {
			seen[e.Subject] = true
		}
	}
	return len(seen)
}

func (a *Agent) tellRoute(w *worker, kind string, c respond.Culprit, text string) {
	a.log.Warn("route over its budget", zap.String("proxy", c.Proxy), zap.String("route", c.Route), zap.String("upstream", c.Upstream),
		zap.String("outcome", kind), zap.String("reason", text))
	a.tell(kind, w, "", c.String()+": "+text)
}
