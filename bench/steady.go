package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	steadyWorkers = 8
	steadyWarm    = 10 * time.Second
)

const steadyMethod = `The agent with its default configuration, which watches one nginx of %d workers, for %v after %v to warm up.
CPU: user and system time of the agent in percent of one core; resident: VmRSS at the end and VmHWM, the peak.
What the samples cost the workers is in the next table.
`

func steadyTable(ctx context.Context, o options) error {
	fmt.Printf("\nThe agent in the steady state\n"+steadyMethod, steadyWorkers, o.steady, steadyWarm)
	t := newTable("workers", "CPU to start", "CPU", "resident", "peak")
	for _, c := range []struct{ name, path string }{{"idle", ""}, {"proxy load", "/proxy"}, {"Lua load", "/compiled/render"}} {
		if err := steadyCase(ctx, o, t, c.name, c.path); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return t.flush()
}

func steadyCase(ctx context.Context, o options, t *table, name, path string) error {
	n, err := startNginx(steadyWorkers)
	if err != nil {
		return err
	}
	defer n.close()
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	if path != "" {
		load(loaded, "http://"+n.address+path, steadyWorkers)
	}
	agent, err := startAgent(ctx, o, n)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	pause(ctx, steadyWarm)
	before, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return fmt.Errorf("the agent ended: %w", err)
	}
	used, err := usage(ctx, agent.Process.Pid, o.steady)
	if err != nil {
		return err
	}
	t.row(name, before.Round(time.Millisecond), fmt.Sprintf("%.2f %%", used),
		memory(agent.Process.Pid, "VmRSS:"), memory(agent.Process.Pid, "VmHWM:"))
	return nil
}

// startAgent starts an agent that sees these nginx only.
func startAgent(ctx context.Context, o options, all ...*nginx) (*exec.Cmd, error) {
	agent, err := agentCommand(ctx, o, all...)
	if err != nil {
		return nil, err
	}
	return agent, agent.Start()
}

// agentCommand prepares such an agent. Its files are in the first nginx's
// folder.
func agentCommand(ctx context.Context, o options, all ...*nginx) (*exec.Cmd, error) {
	var masters []string
	for _, n := range all {
		masters = append(masters, strconv.Itoa(n.cmd.Process.Pid))
	}
	dir := all[0].dir
	conf := fmt.Sprintf("state_dir: %s\nrun_dir: %s\nlisten: ''\nmasters: [%s]\n",
		filepath.Join(dir, "state"), filepath.Join(dir, "run"), strings.Join(masters, ", "))
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		return nil, err
	}
	agent := exec.CommandContext(ctx, o.spinguard, "agent", "--config", path)
	agent.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return agent, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// cpuTime returns what all threads of a process have used of the CPUs.
func cpuTime(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, os.ErrProcessDone
	}
	var sum time.Duration
	for _, path := range threads {
		var ns int64
		if data, err := os.ReadFile(path); err == nil {
			_, _ = fmt.Fscan(bytes.NewReader(data), &ns)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

func memory(pid int, field string) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, line, ok := strings.Cut(string(data), field)
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return "-"
	}
	kib, _ := strconv.Atoi(words[0])
	return fmt.Sprintf("%.1f MB", float64(kib)*1024/1e6)
}
