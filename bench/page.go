package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinguard/spinguard/incident"
	"golang.org/x/sys/unix"
)

const (
	pageIncidents = 10_000
	pageAsked     = 20 // times, after the first
)

const pageMethod = `An agent whose store holds %d incident folders of five files, asked over its unix socket. First: the first such request of a fresh agent, with
the kernel's caches warm; then %d more, one after the other: median and longest. First byte: from the request to the first byte of the answer; whole: to its
last. CPU: of the agent, for a request, mean of the %d. Resident: VmRSS of the agent afterwards. Between two rows the agent is started anew.
`

// pages are what is asked for.
var pages = []struct{ name, path string }{
	{"overview", "/"},
	{"list, newest 100", "/incidents"},
	{"list, a page in the middle", "/incidents?before=MIDDLE"},
	{"list, filter that finds none", "/incidents?verdict=blocked"},
	{"one incident", "/incidents/MIDDLE/"},
	{"API, newest 50", "/api/incidents?limit=50"},
	{"API, all", "/api/incidents?limit=10000"},
	{"metrics", "/metrics"},
}

func pageTable(ctx context.Context, o options) error {
	fmt.Printf("\nPages over %d incidents\n"+pageMethod, pageIncidents, pageIncidents, pageAsked, pageAsked)
	dir, err := os.MkdirTemp("", "sgb")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	middle, err := fillStore(filepath.Join(dir, "state", "incidents"))
	if err != nil {
		return err
	}
	t := newTable("page", "bytes", "first byte: first", "median", "longest", "whole: first", "median", "longest", "CPU", "resident")
	for _, p := range pages {
		if err := pageCase(ctx, o, t, dir, p.name, strings.ReplaceAll(p.path, "MIDDLE", middle)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return t.flush()
}

// fillStore writes the incidents and returns the id of one in the middle.
func fillStore(dir string) (string, error) {
	began := time.Now().Add(-pageIncidents * time.Minute)
	var middle string
	for n := range pageIncidents {
		at := began.Add(time.Duration(n) * time.Minute)
		end := at.Add(613 * time.Millisecond)
		inc := &incident.Incident{
			ID: incident.NewID(at, nil), Origin: "lb-7", Proxy: "nginx-main", Kind: "openresty", Mode: "enforce", Verdict: "runaway", Outcome: incident.Recovered,
			Worker: incident.Worker{Index: n%8 + 1, PID: 4711}, Reason: "304 ms of CPU without progress while a picker runs", Began: at, Ended: &end,
			Evidence: incident.Evidence{Request: fmt.Sprintf("GET /shop/cart/%d HTTP/1.1", n), Upstream: "shop", Version: fmt.Sprint(n), Frames: []string{"gcd (rotation.lua:13)"}},
			Log:      make([]string, 20), WorkersStuck: 1, WorkersEvicted: 1,
		}
		data, err := incident.Encode(inc)
		if err != nil {
			return "", err
		}
		folder := filepath.Join(dir, inc.ID)
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return "", err
		}
		for _, name := range []string{incident.JSONFile, incident.ReportFile, incident.ProfileFile, incident.FlameFile, incident.DiffFile} {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o640); err != nil {
				return "", err
			}
		}
		if n == pageIncidents/2 {
			middle = inc.ID
		}
	}
	return middle, nil
}

func pageCase(ctx context.Context, o options, t *table, dir, name, path string) error {
	config := filepath.Join(dir, "agent.yaml")
	// It watches nothing, and keeps all.
	text := fmt.Sprintf("state_dir: %s/state\nrun_dir: %s/run\nlisten: ''\nmasters: [%d]\nretention: {count: %d, bytes: 100000000000}\n", dir, dir, os.Getpid(), 2*pageIncidents)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	agent := exec.CommandContext(ctx, o.spinguard, "agent", "--config", config)
	agent.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := agent.Start(); err != nil {
		return err
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	var d net.Dialer
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", dir+"/run/agent.sock")
	}}}
	defer client.CloseIdleConnections()
	for end := time.Now().Add(30 * time.Second); ; pause(ctx, 50*time.Millisecond) {
		if _, err := fetch(ctx, client, "/healthz"); err == nil {
			break
		} else if time.Now().After(end) {
			return err
		}
	}
	pause(ctx, 3*time.Second) // the self-test is over
	first, err := fetch(ctx, client, path)
	if err != nil {
		return err
	}
	before, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return err
	}
	var bytes, whole []time.Duration
	for range pageAsked {
		f, err := fetch(ctx, client, path)
		if err != nil {
			return err
		}
		bytes, whole = append(bytes, f.first), append(whole, f.whole)
	}
	after, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return err
	}
	t.row(name, first.bytes, shortly(first.first), shortly(median(bytes)), shortly(percentile(bytes, 100)),
		shortly(first.whole), shortly(median(whole)), shortly(percentile(whole, 100)), shortly((after-before)/pageAsked), memory(agent.Process.Pid, "VmRSS:"))
	return nil
}

// fetched is one answer.
type fetched struct {
	first, whole time.Duration
	bytes        int64
}

func fetch(ctx context.Context, c *http.Client, path string) (fetched, error) {
	var f fetched
	begun := time.Now()
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { f.first = time.Since(begun) }}
	q, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, "http://spinguard"+path, nil)
	if err != nil {
		return f, err
	}
	r, err := c.Do(q)
	if err != nil {
		return f, err
	}
	defer func() { _ = r.Body.Close() }()
	f.bytes, err = io.Copy(io.Discard, r.Body)
	f.whole = time.Since(begun)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return f, err
}

func shortly(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
