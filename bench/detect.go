package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const detectMethod = `A private nginx of 4 workers, of which one at a time is sent into a loop that never ends; the agent in enforce with act_after 400ms,
which evicts it. The workers serve some 50 small requests a second meanwhile, so the agent knows their words. %d processes that only count keep
all %d cores busy. CPU is what the worker's own CPU clock charged from just before the request was sent until the moment that the agent's log gives
for the verdict (the clock is read every 2 ms and interpolated); wall is the time between these two moments.
`

const (
	detectWorkers  = 4
	detectPatience = 20 * time.Second // for one runaway to be found and replaced
	mostRepeated   = 5                // because of the measurement itself
)

// detectTable sends workers into loops and measures when they are confirmed.
func detectTable(ctx context.Context, o options) error {
	cores := runtime.NumCPU()
	fmt.Printf("\nFrom the first stuck instruction to the verdict, %d runaways\n"+detectMethod, o.runaways, cores, cores)
	clocks := startClocks()
	defer clocks.stop()
	n, err := startNginx(detectWorkers)
	if err != nil {
		return err
	}
	defer n.close()
	for core := range cores {
		hog, err := startCounter(core)
		if err != nil {
			return err
		}
		defer hog.close()
	}
	agent, verdicts, err := startJudge(ctx, o, n)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	served, stop := context.WithCancel(ctx)
	defer stop()
	go serve(served, "http://"+n.address+"/text")
	pause(ctx, 2*time.Second)
	t := newTable("loop", "runaways", "clock", "least", "median", "p99", "most")
	row := func(name string, cpu, wall []time.Duration) {
		t.row(name, len(cpu), "CPU", least(cpu), median(cpu), percentile(cpu, 99), most(cpu))
		t.row("", "", "wall", least(wall), median(wall), percentile(wall, 99), most(wall))
	}
	var allCPU, allWall []time.Duration
	repeated := 0
	for _, path := range []string{"compiled", "interpreted"} {
		var cpu, wall []time.Duration
		for len(cpu) < o.runaways/2 {
			d, err := detectOne(ctx, n, "/"+path+"/stuck", clocks, verdicts)
			if errors.Is(err, errUnread) && repeated < mostRepeated {
				repeated++
				continue
			}
			if err != nil {
				return err
			}
			cpu, wall = append(cpu, d.cpu), append(wall, d.wall)
		}
		row(path, cpu, wall)
		allCPU, allWall = append(allCPU, cpu...), append(allWall, wall...)
	}
	row("both", allCPU, allWall)
	err = t.flush()
	if repeated > 0 {
		fmt.Printf("%d runaways were repeated: their CPU clock was not read in time.\n", repeated)
	}
	return err
}

// serve asks for a page over ever new connections, which no stuck worker
// accepts, until the context ends.
func serve(ctx context.Context, url string) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		if r, err := client.Get(url); err == nil {
			_ = r.Body.Close()
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// detection is how long one runaway took to be confirmed.
type detection struct{ cpu, wall time.Duration }

// detectOne sends one worker into a loop and waits until it is replaced.
func detectOne(ctx context.Context, n *nginx, path string, clocks *clocks, verdicts <-chan judged) (detection, error) {
	n.workers = children(n.cmd.Process.Pid)
	clocks.watch(n.workers)
	asked, cancel := context.WithTimeout(ctx, detectPatience)
	defer cancel()
	clocks.reading(asked)
	pause(ctx, 50*time.Millisecond)
	began := time.Now()
	go func() {
		req, err := http.NewRequestWithContext(asked, http.MethodGet, "http://"+n.address+path, nil)
		if err != nil {
			return
		}
		if r, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req); err == nil {
			_ = r.Body.Close()
		}
	}()
	for {
		select {
		case <-asked.Done():
			return detection{}, fmt.Errorf("a worker in %s was not confirmed within %v", path, detectPatience)
		case v, open := <-verdicts:
			if !open {
				return detection{}, errors.New("the agent ended")
			}
			if v.Msg != verdictGiven || v.Verdict != "runaway" || !slices.Contains(n.workers, v.PID) {
				continue
			}
			cpu, err := clocks.between(ctx, v.PID, began, v.TS)
			return detection{cpu: cpu, wall: v.TS.Sub(began)}, errors.Join(err, successor(asked, verdicts))
		}
	}
}

// successor waits until the agent watches a new worker, and that has started.
func successor(ctx context.Context, log <-chan judged) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the agent saw no successor within %v", detectPatience)
		case line, open := <-log:
			if !open {
				return errors.New("the agent ended")
			}
			if line.Msg == workerAppeared {
				pause(ctx, 300*time.Millisecond) // its start-up
				return nil
			}
		}
	}
}

// What the agent's log says.
const (
	verdictGiven   = "verdict"
	workerAppeared = "worker appeared"
)

// judged is a line of the agent's log.
type judged struct {
	TS      time.Time `json:"ts"`
	Msg     string    `json:"msg"`
	PID     int       `json:"pid"`
	Verdict string    `json:"verdict"`
}

// startJudge starts an agent that acts, and follows the verdicts in its log.
func startJudge(ctx context.Context, o options, n *nginx) (*exec.Cmd, <-chan judged, error) {
	conf := fmt.Sprintf("state_dir: %s\nrun_dir: %s\nlisten: ''\nmasters: [%d]\nmode: enforce\nlog_format: json\n"+
		"thresholds:\n  act_after: 400ms\nrails:\n  evictions: 1000\n",
		filepath.Join(n.dir, "state"), filepath.Join(n.dir, "run"), n.cmd.Process.Pid)
	path := filepath.Join(n.dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		return nil, nil, err
	}
	agent := exec.CommandContext(ctx, o.spinguard, "agent", "--config", path)
	// It leads its session, as a service does.
	agent.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setsid: true}
	log, err := agent.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := agent.Start(); err != nil {
		return nil, nil, err
	}
	verdicts := make(chan judged, 1024)
	go followLog(log, verdicts)
	return agent, verdicts, nil
}

func followLog(log io.Reader, verdicts chan<- judged) {
	defer close(verdicts)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v judged
		if json.Unmarshal(lines.Bytes(), &v) != nil {
			fmt.Fprintln(os.Stderr, lines.Text()) // why it does not start
		} else if v.Msg == verdictGiven || v.Msg == workerAppeared {
			verdicts <- v
		}
	}
}
