package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spinguard/spinguard/watchdog"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web"
)

func runAgent(e env, args []string) error {
	f := newFlags(e, "agent", "[--config FILE]",
		"Watches every nginx, OpenResty, HAProxy and Go proxy of this host. Without a configuration it observes:\nit keeps evidence and does nothing else. See docs/configuration.md.",
		"  spinguard agent\n  spinguard agent --config /etc/spinguard/agent.yaml\n")
	path := f.String("config", "", "read this `FILE`")
	if _, err := f.parse(args, 0, 0); err != nil {
		return err
	}
	cfg, err := loadConfig(*path)
	if err != nil {
		return err
	}
	log, err := newLogger(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	return serveAgent(e.ctx, cfg, *path, log)
}

func loadConfig(path string) (config.Config, error) {
	if path == "" {
		return config.Default(), nil
	}
	return config.Load(path)
}

func newLogger(cfg config.Config) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(cfg.LogLevel)
	if err != nil {
		return nil, err
	}
	z := zap.NewProductionConfig()
	z.Level, z.Encoding, z.Sampling = zap.NewAtomicLevelAt(level), cfg.LogFormat, nil
	z.DisableStacktrace, z.DisableCaller = true, true
	z.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	z.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	return z.Build()
}

// serveAgent runs the agent and its web server until the context ends.
func serveAgent(ctx context.Context, cfg config.Config, path string, log *zap.Logger) error {
	agent, err := watchdog.New(cfg, version, log)
	if err != nil {
		return err
	}
	defer agent.Close()
	token := os.Getenv("SPINGUARD_TOKEN")
	listeners, certificates, err := listen(cfg, token)
	if err != nil {
		return err
	}
	server := web.New(web.Options{
		Source: agent, Incidents: agent.Incidents(), Metrics: agent.Metrics(), Feed: agent.Feed(), Log: log,
		Token: token, Private: token != "", Certificates: certificates, Exposed: cfg.Listen != "" && !config.Loopback(cfg.Listen),
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- server.Serve(ctx, listeners...)
	}()
	go reloadOnHangup(ctx, agent, certificates, path, log)
	go tellSystemd(ctx, agent, log)
	err = agent.Run(ctx)
	cancel()
	return errors.Join(err, <-served)
}

// reloadOnHangup reads configuration and certificates again on each SIGHUP. A
// bad one is said and changes nothing.
func reloadOnHangup(ctx context.Context, agent *watchdog.Agent, certificates *web.Certificates, path string, log *zap.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		cfg, err := loadConfig(path)
		if err == nil {
			err = agent.Reload(cfg)
		}
		if certificates != nil {
			err = errors.Join(err, certificates.Reload())
		}
		if err != nil {
			log.Error("reload", zap.Error(err))
		}
	}
}

// tellSystemd says that the agent is ready, and keeps saying that its loop
// turns if the service has a watchdog. Without systemd it does nothing.
func tellSystemd(ctx context.Context, agent *watchdog.Agent, log *zap.Logger) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		log.Warn("systemd could not be told", zap.Error(err))
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if agent.Turns(every / 2) {
				_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
			}
		}
	}
}
