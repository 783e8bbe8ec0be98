package drill

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spinguard/spinguard/watchdog/config"
	"gopkg.in/yaml.v3"
)

// socketMax is the longest path that a unix socket may have.
const socketMax = 107

// agentFiles are the places of one agent.
type agentFiles struct {
	config, log, state, run, socket string
}

// placeAgent chooses where the agent keeps its files. Its run directory is
// private and short, whatever TMPDIR says.
func placeAgent(out, run string) (agentFiles, error) {
	f := agentFiles{
		config: filepath.Join(out, "agent.yaml"),
		log:    filepath.Join(out, "agent.log"),
		state:  filepath.Join(out, "state"),
		run:    run,
	}
	if len(filepath.Join(f.run, "agent.sock")) > socketMax {
		dir, err := os.MkdirTemp("/tmp", "sg-")
		if err != nil {
			return f, err
		}
		f.run = dir
	}
	f.socket = filepath.Join(f.run, "agent.sock")
	if err := os.MkdirAll(f.run, 0o700); err != nil {
		return f, err
	}
	return f, os.MkdirAll(f.state, 0o755)
}

// agentConfig returns the agent's configuration for this run: its defaults,
// the case's settings over them, and only this proxy in view.
func (l *lab) agentConfig(mode config.Mode, f agentFiles) config.Config {
	cfg := config.Default()
	cfg.Mode, cfg.StateDir, cfg.RunDir, cfg.Listen = mode, f.state, f.run, ""
	cfg.LogLevel, cfg.LogFormat = "debug", "json"
	cfg.Masters = []int{l.master}
	if l.c.Agent.ActAfter > 0 {
		cfg.Thresholds.ActAfter = l.c.Agent.ActAfter
	}
	cfg.EvictSpinning = l.c.Agent.EvictSpinning
	if u := l.c.Culprit; u != nil {
		cfg.Culprits = []config.Culprit{{Frame: u.Frame, Upstream: u.Upstream, Version: u.Version}}
	}
	if q := l.c.Quarantine; q != nil {
		cfg.Hook.File, cfg.Hook.Line = q.File, "{{.Upstream}} {{.Version}}"
	}
	if l.sc.agent != nil {
		l.sc.agent(&cfg)
	}
	return cfg
}

func writeAgentConfig(file string, cfg config.Config) error {
	data, err := yaml.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("configuration of the agent: %w", err)
	}
	return os.WriteFile(file, data, 0o644)
}
