package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const startRounds = 10

const startMethod = `From the start of the program to the first sample of a worker, with one nginx of %d workers under load; %d starts. wall: to
the instant at which that sample was taken. CPU: user and system time of the agent until it was read, at most %v later.
`

func startTable(ctx context.Context, o options) error {
	fmt.Printf("\nThe agent's start\n"+startMethod, steadyWorkers, startRounds, lookEvery)
	n, err := startNginx(steadyWorkers)
	if err != nil {
		return err
	}
	defer n.close()
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	load(loaded, "http://"+n.address+"/compiled/render", steadyWorkers)
	var wall, cpu []time.Duration
	for range startRounds {
		w, c, err := startOnce(ctx, o, n)
		if err != nil {
			return err
		}
		wall, cpu = append(wall, w), append(cpu, c)
	}
	t := newTable("", "median", "least", "most")
	for _, x := range []struct {
		name string
		list []time.Duration
	}{{"wall", wall}, {"CPU", cpu}} {
		list := x.list
		slices.Sort(list)
		t.row(x.name, list[len(list)/2].Round(time.Millisecond), list[0].Round(time.Millisecond), list[len(list)-1].Round(time.Millisecond))
	}
	return t.flush()
}

// lookEvery is how often the agent reads the samples of workers that are well.
const lookEvery = 200 * time.Millisecond

var firstSample = regexp.MustCompile(`first sample.*"monotonic_ns": ?(\d+)`)

// startOnce starts an agent and ends it once it has its first sample.
func startOnce(ctx context.Context, o options, n *nginx) (wall, cpu time.Duration, err error) {
	agent, err := agentCommand(ctx, o, n)
	if err != nil {
		return 0, 0, err
	}
	r, w := io.Pipe()
	agent.Stdout, agent.Stderr = w, w
	began := monotonic()
	if err := agent.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { _ = r.Close(); _ = agent.Process.Kill(); _ = agent.Wait() }()
	patience := time.AfterFunc(30*time.Second, func() { _ = w.CloseWithError(errors.New("no sample within 30 s")) })
	defer patience.Stop()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if m := firstSample.FindSubmatch(lines.Bytes()); m != nil {
			ns, err := strconv.ParseInt(string(m[1]), 10, 64)
			if err != nil {
				return 0, 0, err
			}
			cpu, err = cpuTime(agent.Process.Pid)
			return time.Duration(ns) - began, cpu, err
		}
	}
	return 0, 0, fmt.Errorf("the agent took no sample: %v", lines.Err())
}

func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}
