package watchdog

import (
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/watchdog/respond"
)

// quarantine has the proxy's balancer refuse the culprit of an incident. It
// asks the rails first. A hook that is a command runs beside the loop, which
// then waits with the incident's next step until it has ended.
func (a *Agent) quarantine(e *episode, why string) {
	now := a.clock.wall()
	entries := e.in.quarantines(now, a.clock.mono(), a.log)
	upstreams, refused := len(e.in.upstreams), refusedUpstreams(entries, e.culprit.Upstream)
	if e.culprit.Server != "" {
		upstreams, refused = a.heldServers(e)
	}
	until, err := a.rails.Quarantine(now, e.culprit, upstreams, refused)
	if err == nil && a.manual[liftKey(e.culprit)] {
		err = fmt.Errorf("an operator has lifted the quarantine of it: a manual word wins")
	}
	if err != nil {
		e.act(a.now(e), "quarantine", e.culprit.String(), "refused", err.Error())
		e.note(a.now(e), "refused", err.Error())
		a.metrics.IncRefused(e.in.Name)
		e.response.Quarantined(err)
		return
	}
	if e.culprit.Server != "" {
		a.holdServer(e, until, why)
		return
	}
	if e.in.ledger != nil && e.digestOrNumber() {
		a.quarantined(e, until, why, a.addEntry(e, until, why))
		return
	}
	a.runHook(e, until, why)
}

// digestOrNumber says that the version can be written into a ledger.
func (e *episode) digestOrNumber() bool {
	_, err := strconv.ParseUint(e.culprit.Version, 10, 64)
	return err == nil
}

func (a *Agent) addEntry(e *episode, until time.Time, why string) error {
	version, err := strconv.ParseUint(e.culprit.Version, 10, 64)
	if err != nil {
		return err
	}
	_, err = e.in.ledger.Add(balancer.Entry{
		Origin: a.cfg.Node, Kind: balancer.KindVersion, Upstream: e.culprit.Upstream, Version: version, Digest: e.digest,
		Until: until, Reason: e.inc.ID + ": " + why,
	}, a.clock.wall())
	e.in.readAt = 0
	return err
}

// quarantined notes the outcome of a quarantine.
func (a *Agent) quarantined(e *episode, until time.Time, why string, err error) {
	now := a.now(e)
	e.pending = false
	e.response.Quarantined(err)
	if err != nil {
		e.act(now, "quarantine", e.culprit.String(), "failed", err.Error())
		e.note(now, "note", "the quarantine failed: "+err.Error())
		a.log.Error("quarantine failed", zap.String("incident", e.inc.ID), zap.Error(err))
		return
	}
	text := fmt.Sprintf("until %s (%s): %s", until.Format(time.TimeOnly), until.Sub(a.clock.wall()).Round(time.Second), why)
	e.act(now, "quarantine", e.culprit.String(), "done", text)
	e.note(now, "quarantined", e.culprit.String()+" "+text)
	if e.inc.Timeline.Quarantined == nil {
		e.inc.Timeline.Quarantined = incident.MS(e.inc.Began, now)
	}
	a.metrics.IncQuarantine(e.in.Name)
	a.log.Warn("quarantined", zap.String("incident", e.inc.ID), zap.String("upstream", e.culprit.Upstream),
		zap.String("version", e.culprit.Version), zap.Time("until", until))
	if main := e.mainMember(); main != nil && main.w != nil {
		a.tell("quarantined", main.w, e.inc.ID, text)
	}
}

// liftKey names a culprit among those whose quarantine an operator lifted.
func liftKey(c respond.Culprit) string {
	subject := "version " + c.Version
	switch {
	case c.Server != "":
		subject = "server " + c.Server
	case c.Route != "":
		subject = "route " + c.Route
	}
	return c.Proxy + "\x00" + c.Upstream + "\x00" + subject
}
