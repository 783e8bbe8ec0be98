package profiler

import (
	"testing"

	"github.com/spinguard/spinguard/bpf"
)

// luaCases makes the Lua modules of the tests known to nginx.
const luaCases = `
  init_by_lua_block {
    package.path = "TESTDATA/?.lua;" .. package.path
    cases = require "cases"
    interpreted = require "interpreted"
  }
`

// From one handler to the next the fingerprint changes, within one turn of the
// loop, too: a turn is told by ngx_current_msec standing still.
func TestLowerChangesWithTheHandler(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(*testing.T, *nginx)
		rates [2]float64 // distinct fingerprints for each sample, at least and at most
	}{
		{"400 timers in one turn", func(t *testing.T, n *nginx) { n.Trigger(t, "/timers") }, [2]float64{0.8, 1}},
		{"24 requests in one turn", func(t *testing.T, n *nginx) { n.Load(t, "/render", 24) }, [2]float64{0.2, 0.7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNginx(t, 1, "", luaCases+"lua_max_running_timers 2000; lua_max_pending_timers 2000;", `
				location /timers { content_by_lua_block { cases.timers(400, 25000, 20) } }
				location /render { content_by_lua_block { ngx.say(cases.render(150000)) } }`)
			samples, prints := turns(t, n.Workers[0], func() { c.serve(t, n) })
			rate := float64(prints) / float64(samples)
			t.Logf("%d samples in long turns, %d fingerprints", samples, prints)
			if samples < 100 || rate < c.rates[0] || rate > c.rates[1] {
				t.Errorf("%.2f fingerprints for each of %d samples, want %.2f to %.2f", rate, samples, c.rates[0], c.rates[1])
			}
		})
	}
}

// turns samples a worker and counts, over the long turns of its loop, samples
// and changes of the fingerprint.
func turns(t *testing.T, pid int, serve func()) (samples, prints int) {
	t.Helper()
	s, p := openSampler(t), openProcess(t, pid)
	addr, size, ok := p.Symbol("ngx_current_msec")
	if !ok {
		t.Fatal("ngx_current_msec not found")
	}
	w := bpf.Watch{PID: pid, TID: pid, ProgressAddr: addr, ProgressSize: int(size), Full: true}
	if err := s.Watch(w); err != nil {
		t.Fatal(err)
	}
	serve()
	byTurn := map[uint64]map[uint64]int{}
	take(t, s, 500, aMinute, func(sample bpf.Sample) {
		turn := byTurn[sample.Progress]
		if turn == nil {
			turn = map[uint64]int{}
			byTurn[sample.Progress] = turn
		}
		turn[p.Understand(sample).Lower()]++
	})
	all, without := 0, 0
	for _, turn := range byTurn {
		n := 0
		for _, k := range turn {
			n += k
		}
		all, without = all+n, without+turn[0]
		if n >= 10 {
			samples, prints = samples+n, prints+len(turn)
		}
	}
	if without*100 > all { // samples that wait too long on a crowded machine have none
		t.Errorf("%d of %d samples without fingerprint", without, all)
	}
	return samples, prints
}
