package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// captureRate is the rate of all tools, in samples a second.
const captureRate = "99"

const captureMethod = `Captures of one worker by each tool in turn, %v at %s Hz, on the same running worker; of HAProxy and Caddy, all threads.
whole: share of stacks that reach main or _start, in Go programs the entry of the goroutine or of its thread. Lua: share with the name of a Lua function.
CPU: user and system time of the tool and its children, start-up and symbols included, for 1,000 samples.
bytes: of the file with the samples. picture: from the end of sampling to a flame graph (perf: perf script%s).
`

// captured is what one tool made of one worker.
type captured struct {
	tally
	cpu     time.Duration
	bytes   int64
	picture time.Duration
}

// capturer is one tool. It samples a process into a folder.
type capturer struct {
	name    string
	program string
	take    func(ctx context.Context, o options, pid int, dir string) (captured, error)
}

var capturers = []capturer{
	{"spinguard", "", bySpinguard},
	{"perf, dwarf", "perf", byPerf},
}

var captureCases = []struct{ name, path string }{
	{"stuck, compiled", "/compiled/stuck"},
	{"stuck, interpreter", "/interpreted/stuck"},
	{"Lua load, compiled", "/compiled/render"},
	{"Lua load, interpreter", "/interpreted/render"},
	{"proxy load", "/proxy"},
}

func captureTable(ctx context.Context, o options) error {
	var tools []capturer
	for _, c := range capturers {
		if _, err := exec.LookPath(c.program); c.program != "" && err != nil {
			fmt.Printf("not measured: %s is not installed\n", c.program)
			continue
		}
		tools = append(tools, c)
	}
	script := " alone, flamegraph.pl is not installed"
	if flamegraphScript() != "" {
		script = " and flamegraph.pl"
	}
	fmt.Printf("\nEvidence of one worker\n"+captureMethod, o.slice, captureRate, script)
	t := newTable("worker", "tool", "samples", "whole", "Lua", "CPU", "bytes", "picture")
	for _, c := range captureCases {
		if err := captureCase(ctx, o, t, tools, c.name, c.path); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for _, other := range []func(context.Context, options, *table, []capturer) error{haproxyCase, caddyCase} {
		if err := other(ctx, o, t, tools); err != nil {
			return err
		}
	}
	return t.flush()
}

func captureCase(ctx context.Context, o options, t *table, tools []capturer, name, path string) error {
	n, err := startNginx(1)
	if err != nil {
		return err
	}
	defer n.close()
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	load(loaded, "http://"+n.address+path, 2)
	time.Sleep(500 * time.Millisecond) // until it is compiled and warm
	return captureAll(ctx, o, t, tools, name, n.workers[0])
}

// captureAll has each tool in turn sample a process.
func captureAll(ctx context.Context, o options, t *table, tools []capturer, name string, pid int) error {
	for _, tool := range tools {
		dir, err := os.MkdirTemp("", "spinguard-bench-")
		if err != nil {
			return err
		}
		got, err := tool.take(ctx, o, pid, dir)
		_ = os.RemoveAll(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", tool.name, err)
		}
		t.row(name, tool.name, got.samples, share(got.whole, got.samples), share(got.lua, got.samples),
			perThousand(got.cpu, got.samples), got.bytes, got.picture.Round(time.Millisecond))
	}
	return nil
}

// used returns the CPU time of a child that has ended.
func used(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func bySpinguard(ctx context.Context, o options, pid int, dir string) (captured, error) {
	profile, svg := filepath.Join(dir, "out.pb.gz"), filepath.Join(dir, "out.svg")
	began := time.Now()
	take := exec.CommandContext(ctx, o.spinguard, "capture", "--pid", fmt.Sprint(pid), "--rate", captureRate, "--seconds", fmt.Sprint(o.slice.Seconds()), "-o", profile)
	if out, err := take.CombinedOutput(); err != nil {
		return captured{}, fmt.Errorf("%w: %s", err, out)
	}
	late := time.Since(began) - o.slice
	began = time.Now()
	draw := exec.CommandContext(ctx, o.spinguard, "flamegraph", profile, "-o", svg)
	if out, err := draw.CombinedOutput(); err != nil {
		return captured{}, fmt.Errorf("%w: %s", err, out)
	}
	got := captured{cpu: used(take) + used(draw), picture: late + time.Since(began), bytes: size(profile)}
	var err error
	got.tally, err = judgeProfile(profile)
	return got, err
}

func byPerf(ctx context.Context, o options, pid int, dir string) (captured, error) {
	data, text := filepath.Join(dir, "perf.data"), filepath.Join(dir, "perf.txt")
	began := time.Now()
	take := exec.CommandContext(ctx, "perf", "record", "-q", "-F", captureRate, "-e", "cpu-clock", "--call-graph", "dwarf,16384",
		"-p", fmt.Sprint(pid), "-o", data, "--", "sleep", fmt.Sprint(o.slice.Seconds()))
	if out, err := take.CombinedOutput(); err != nil {
		return captured{}, fmt.Errorf("%w: %s", err, out)
	}
	late := time.Since(began) - o.slice
	began = time.Now()
	script := exec.CommandContext(ctx, "sh", "-c", `perf script -i "$1" >"$2" 2>/dev/null`, "sh", data, text)
	if err := script.Run(); err != nil {
		return captured{}, fmt.Errorf("perf script: %w", err)
	}
	got := captured{cpu: used(take) + used(script), bytes: size(data)}
	if path := flamegraphScript(); path != "" {
		draw := exec.CommandContext(ctx, "sh", "-c", `stackcollapse-perf.pl "$2" | "$1" >"$2.svg"`, "sh", path, text)
		if err := draw.Run(); err != nil {
			return captured{}, fmt.Errorf("flamegraph.pl: %w", err)
		}
		got.cpu += used(draw)
	}
	got.picture = late + time.Since(began)
	var err error
	got.tally, err = judgeScript(text)
	return got, err
}

// flamegraphScript returns FlameGraph's script, if it and its companion are
// installed.
func flamegraphScript() string {
	path, err := exec.LookPath("flamegraph.pl")
	if _, other := exec.LookPath("stackcollapse-perf.pl"); err != nil || other != nil {
		return ""
	}
	return path
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
