package watchdog

import (
	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/notify"
)

// closeStale ends the incidents that an agent before this one left open.
func (a *Agent) closeStale() {
	list, err := a.store.List(incident.Filter{})
	if err != nil {
		a.log.Warn("could not list the incidents", zap.Error(err))
		return
	}
	for _, summary := range list {
		inc, err := a.store.Load(summary.ID)
		if err != nil || !inc.Open() {
			continue
		}
		now := a.clock.wall()
		if now.Before(inc.Began) {
			now = inc.Began // the clock was set back meanwhile
		}
		inc.Ended, inc.Outcome = &now, incident.Gone
		inc.Events = append(inc.Events, incident.Event{At: now, Kind: "note", Text: "the agent that watched it ended; this one began anew"})
		if err := a.store.Update(inc, nil); err != nil {
			a.log.Warn("could not close an old incident", zap.String("incident", inc.ID), zap.Error(err))
		}
		a.announce(notify.Ended, inc)
	}
}
