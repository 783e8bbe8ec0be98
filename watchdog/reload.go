package watchdog

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/respond"
)

// Reload puts another configuration into force. What can't change while the
// agent runs keeps its value and is named in the error; the rest is in force.
func (a *Agent) Reload(next config.Config) error {
	return a.ask(func() error {
		now := a.cfg
		kept := fixed(&next, now)
		a.cfg = next
		if next.Rails != now.Rails {
			a.rails = respond.NewRails(next.Rails, a.clock.wall(), a.jitter)
		}
		a.settings.Store(&next)
		a.log.Info("configuration reloaded", zap.String("mode", string(next.Mode)), zap.Strings("kept", kept))
		if len(kept) > 0 {
			return fmt.Errorf("these keys need a restart and keep their values: %q", kept)
		}
		return nil
	})
}

// fixed gives the keys that can't change while the agent runs their old
// values, and names those that were to change.
func fixed(next *config.Config, now config.Config) []string {
	var kept []string
	keep := func(key string, same bool) {
		if !same {
			kept = append(kept, key)
		}
	}
	if next.Node == "" {
		next.Node = now.Node
	}
	keep("state_dir", next.StateDir == now.StateDir)
	keep("run_dir", next.RunDir == now.RunDir)
	keep("listen", next.Listen == now.Listen)
	keep("tls", next.TLS == now.TLS)
	keep("log_level", next.LogLevel == now.LogLevel)
	keep("log_format", next.LogFormat == now.LogFormat)
	keep("sampling.rate", next.Sampling.Rate == now.Sampling.Rate)
	keep("retention", next.Retention == now.Retention)
	keep("notify", next.Notify == now.Notify)
	keep("export", next.Export == now.Export)
	next.Notify, next.Export = now.Notify, now.Export
	next.StateDir, next.RunDir, next.Listen, next.Sampling.Rate, next.Retention = now.StateDir, now.RunDir, now.Listen, now.Sampling.Rate, now.Retention
	next.TLS = now.TLS
	next.LogLevel, next.LogFormat = now.LogLevel, now.LogFormat
	return kept
}

// Turns says whether the agent's own loop turned within the last while: the
// watchdog of watchdogs asks.
func (a *Agent) Turns(within time.Duration) bool {
	return a.clock.mono()-time.Duration(a.beat.Load()) < within
}
