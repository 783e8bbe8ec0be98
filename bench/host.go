package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

const (
	hostMasters   = 5
	hostWorkers   = 64 // of all masters together
	hostProcesses = 500
)

const hostMethod = `One agent with its default configuration; %d private nginx with %d workers together, each asked for a small page ten times a second; %d
other processes that sleep. CPU: user and system time of the agent in percent of one core, resident: VmRSS at the end, both for each of %d
periods of %v after %v to warm up. For hours: -host-periods 36 -host-period 5m.
`

// hostTable measures the agent on a host with many workers and processes.
func hostTable(ctx context.Context, o options) error {
	fmt.Printf("\nThe agent on a big host\n"+hostMethod, hostMasters, hostWorkers, hostProcesses, o.hostPeriods, o.hostPeriod, steadyWarm)
	var all []*nginx
	defer func() {
		for _, n := range all {
			n.close()
		}
	}()
	for i := range hostMasters {
		workers := hostWorkers / hostMasters
		if i < hostWorkers%hostMasters {
			workers++
		}
		n, err := startNginx(workers)
		if err != nil {
			return err
		}
		all = append(all, n)
	}
	for range hostProcesses {
		sleeper := exec.CommandContext(ctx, "sleep", "1d")
		sleeper.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if err := sleeper.Start(); err != nil {
			return err
		}
		defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	}
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	for _, n := range all {
		go ask(loaded, "http://"+n.address+"/text", 100*time.Millisecond)
	}
	return hostPeriods(ctx, o, all)
}

func hostPeriods(ctx context.Context, o options, all []*nginx) error {
	agent, err := startAgent(ctx, o, all...)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	pause(ctx, steadyWarm)
	t := newTable("period", "CPU", "resident", "peak")
	for period := range o.hostPeriods {
		used, err := usage(ctx, agent.Process.Pid, o.hostPeriod)
		if err != nil {
			return err
		}
		t.row(period+1, fmt.Sprintf("%.2f %%", used), memory(agent.Process.Pid, "VmRSS:"), memory(agent.Process.Pid, "VmHWM:"))
	}
	return t.flush()
}

// usage returns how much of one core a process uses, in percent.
func usage(ctx context.Context, pid int, d time.Duration) (float64, error) {
	began := time.Now()
	before, err := cpuTime(pid)
	if err != nil {
		return 0, fmt.Errorf("the agent ended: %w", err)
	}
	pause(ctx, d)
	after, err := cpuTime(pid)
	if err != nil {
		return 0, fmt.Errorf("the agent ended: %w", err)
	}
	return 100 * (after - before).Seconds() / time.Since(began).Seconds(), nil
}
