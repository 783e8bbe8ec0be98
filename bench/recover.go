package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

const recoverMethod = `"spinguard drill gcd-nan-four", again and again: the poison reaches each of the four workers of a private nginx that uses the balancer; how many got
stuck, and in how many incidents, is told below. Times are counted from the trigger, as the drill tells them; recovered is when every worker serves again.
Four loops share the machine's cores until the first is confirmed, after 300 ms of its CPU.
`

// drilled is what is read of a drill's result.
type drilled struct {
	Passed       bool              `json:"passed"`
	WorkersStuck int               `json:"workers_stuck"`
	Timeline     map[string]*int64 `json:"timeline"`
	Incidents    []string          `json:"incidents"`
}

func recoverTable(ctx context.Context, o options) error {
	fmt.Printf("\nFrom the poison to recovery, %d drills\n"+recoverMethod, o.recovers)
	steps := []string{"suspected", "confirmed", "captured", "quarantined", "evicted", "recovered"}
	times, stuck, incidents, passed := map[string][]time.Duration{}, map[int]int{}, map[int]int{}, 0
	for range o.recovers {
		d, err := drillOnce(ctx, o)
		if err != nil {
			return err
		}
		if d.Passed {
			passed++
		}
		stuck[d.WorkersStuck]++
		incidents[len(d.Incidents)]++
		for _, s := range steps {
			if ms := d.Timeline[s]; ms != nil {
				times[s] = append(times[s], time.Duration(*ms)*time.Millisecond)
			}
		}
	}
	t := newTable("step", "drills", "least", "median", "p99", "most")
	for _, s := range steps {
		t.row(s, len(times[s]), least(times[s]), median(times[s]), percentile(times[s], 99), most(times[s]))
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Printf("%d of %d drills passed; drills by workers stuck: %v, by incidents: %v\n", passed, o.recovers, stuck, incidents)
	return nil
}

func drillOnce(ctx context.Context, o options) (drilled, error) {
	out, err := os.MkdirTemp("", "spinguard-bench-")
	if err != nil {
		return drilled{}, err
	}
	defer func() { _ = os.RemoveAll(out) }()
	cmd := exec.CommandContext(ctx, o.spinguard, "drill", "gcd-nan-four", "--json", "--out", out)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	var d drilled
	if bad := json.Unmarshal(text, &d); bad != nil {
		return d, fmt.Errorf("drill gcd-nan-four: %v: %s", err, said.String())
	}
	return d, nil
}
