package watchdog

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/goroutines"
	"github.com/spinguard/spinguard/web/api"
)

// A Go proxy has no event loop of its own: it is suspected when all of its
// threads together keep a core busy for goRounds looks. Then it is counted for
// a moment how often any of them asks the kernel for events, which is the
// progress of a Go program's I/O; its goroutines are asked for, where the
// configuration says at which address; and nothing else is done.
const (
	goBusy   = 0.9 // cores
	goRounds = 2
	goEvery  = 5 * time.Minute
	goShown  = 5 // groups of goroutines
	goProbe  = 500 * time.Millisecond
	goProbed = 64 // threads
)

// goProcess is what is remembered of a Go proxy from look to look.
type goProcess struct {
	at, cpu time.Duration
	busy    int
	told    time.Duration // 0: never
}

// step takes in the CPU time of all threads and says whether the goroutines
// are to be asked for.
func (g *goProcess) step(now, cpu time.Duration) bool {
	if wall := now - g.at; g.at != 0 && wall > 0 && float64(cpu-g.cpu) >= goBusy*float64(wall) {
		g.busy++
	} else {
		g.busy = 0
	}
	g.at, g.cpu = now, cpu
	if g.busy < goRounds || g.told != 0 && now-g.told < goEvery {
		return false
	}
	g.told = now
	return true
}

// lookAtGoProxies runs beside the loop, as often as the host's signals.
func (a *Agent) lookAtGoProxies(ctx context.Context, known map[int]*goProcess) {
	seen := map[int]bool{}
	for _, w := range a.view.Load().workers {
		if w.Kind != string(proxy.Go) {
			continue
		}
		cpu, err := processCPU(w.PID)
		if err != nil {
			continue // it has just ended
		}
		seen[w.PID] = true
		if known[w.PID] == nil {
			known[w.PID] = &goProcess{}
		}
		if known[w.PID].step(a.clock.mono(), cpu) {
			a.tellGoroutines(ctx, w)
		}
	}
	for pid := range known {
		if !seen[pid] {
			delete(known, pid)
		}
	}
}

func (a *Agent) tellGoroutines(ctx context.Context, w api.WorkerStatus) {
	texts := []string{"keeps a core busy", probeWaits(ctx, w.PID)}
	for _, rule := range a.settings.Load().GoPprof {
		if !strings.HasPrefix(w.Proxy, rule.Proxy) {
			continue
		}
		groups, err := goroutines.Fetch(ctx, rule.URL)
		if err != nil {
			a.log.Warn("goroutines can't be read", zap.String("proxy", w.Proxy), zap.Error(err))
		}
		for _, g := range groups[:min(goShown, len(groups))] {
			texts = append(texts, g.Text())
		}
		break
	}
	a.log.Info("busy Go proxy", zap.String("proxy", w.Proxy), zap.Int("pid", w.PID), zap.Strings("what", texts))
	a.feed.Publish(api.Event{At: a.clock.wall(), Kind: "goroutines", Proxy: w.Proxy, Worker: w.PID, Text: strings.Join(texts, "; ")})
}

// probeWaits counts for a moment how often the threads of a process ask for
// events. The counters are gone when it returns.
func probeWaits(ctx context.Context, pid int) string {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return "it has ended"
	}
	var counters []*waitCounter
	for _, task := range tasks[:min(goProbed, len(tasks))] {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			c := &waitCounter{waits: openCounters(tid, waitEvents)}
			defer c.close()
			counters = append(counters, c)
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(goProbe):
	}
	var total uint64
	counted := false
	for _, c := range counters {
		n, ok := sumCounters(c.waits)
		total, counted = total+n, counted || ok
	}
	switch {
	case !counted:
		return "whether it still asks for events can't be told on this kernel"
	case total == 0:
		return fmt.Sprintf("it did not ask for events once in %s", goProbe)
	}
	return fmt.Sprintf("it asked for events %d times in %s", total, goProbe)
}

// processCPU returns the CPU time of all threads of a process.
func processCPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("stat of process %d: cut", pid)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100), err
}
