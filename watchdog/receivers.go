package watchdog

import (
	"path/filepath"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/export"
	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/notify"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web"
)

// openReceivers starts to deliver to those who are told of incidents. Without
// any, both are nil, which tells nobody.
func (a *Agent) openReceivers(cfg config.Config, log *zap.Logger) {
	dir := filepath.Join(cfg.StateDir, "spool")
	page := cfg.Notify.Page
	if page == "" && cfg.Listen != "" {
		page = "http://" + cfg.Listen
		if cfg.TLS.Cert != "" {
			page = "https://" + cfg.Listen
		}
	}
	a.notifier = notify.New(notify.Options{
		Dir: dir, Webhook: string(cfg.Notify.Webhook), Alertmanager: string(cfg.Notify.Alertmanager), Page: page,
		Authorization: cfg.Notify.Authorization, Log: log,
	})
	a.exporter = export.New(export.Options{
		Dir: dir, Pyroscope: string(cfg.Export.Pyroscope), OTLP: string(cfg.Export.OTLP), Name: cfg.Export.Name, Authorization: cfg.Export.Authorization, Log: log,
	})
	a.metrics.WatchSpools(a.spools)
}

// spools is what the metrics say of the receivers.
func (a *Agent) spools() (list []web.Spool) {
	for _, s := range append(a.notifier.Spools(), a.exporter.Spools()...) {
		list = append(list, web.Spool{
			Receiver: s.Receiver, Waiting: s.Waiting, Unsaved: s.Unsaved, Bytes: s.Bytes,
			Queued: s.Queued, Delivered: s.Delivered, Failed: s.Failed, Dropped: s.Dropped,
		})
	}
	return list
}

// announce tells the receivers what happened to an incident.
func (a *Agent) announce(kind notify.Kind, inc *incident.Incident) {
	a.notifier.Tell(kind, inc, a.clock.wall())
}

func (a *Agent) closeReceivers() {
	a.notifier.Close()
	a.exporter.Close()
}
