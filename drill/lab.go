package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"
)

// lab is one running case: its folders, ports, processes and open connections.
type lab struct {
	sc   *Scenario
	c    *Case // with the variables replaced
	vars Vars
	row  *row            // the ports, held until clean-up
	run  string          // private, removed at the end
	out  string          // kept: configuration and log of the agent, incidents
	ctx  context.Context // of the whole run, for what is started late

	brood   *brood
	master  int
	daemon  *agent   // nil in mode none
	lasting *lasting // one agent for several labs; nil: each has its own
	probing *prober
	watch   *workerWatch
	loadRun *loadRun
	back    *backend  // nil where the proxy needs none
	storm   *storm    // nil without one
	night   *nightRun // nil without one
	trigger time.Time // the instant before the fault

	abort context.CancelCauseFunc // ends the run
	mu    sync.Mutex
	held  []*call // requests whose answer was given up
}

// newLab makes the folders of a run and finds it ports. The caller calls
// cleanUp, also after an error of anything later.
func newLab(ctx context.Context, abort context.CancelCauseFunc, sc *Scenario, out string) (*lab, error) {
	run, err := os.MkdirTemp("", "spinguard-drill-")
	if err != nil {
		return nil, err
	}
	l := &lab{sc: sc, run: run, out: out, ctx: ctx, abort: abort, brood: newBrood()}
	if err := l.prepare(); err != nil {
		l.giveBack()
		_ = os.RemoveAll(run)
		return nil, err
	}
	return l, nil
}

func (l *lab) prepare() error {
	// Workers may run as another user, and must reach their files.
	if err := os.Chmod(l.run, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(l.out, 0o755); err != nil {
		return err
	}
	var err error
	if l.row, err = freePorts(); err != nil {
		return err
	}
	dir, err := l.sc.folder(l.run)
	if err != nil {
		return err
	}
	l.vars = newVars(l.run, dir, l.row.first)
	if l.c, err = l.sc.Case.filled(l.vars); err != nil {
		return err
	}
	return l.writeConfig(dir)
}

// giveBack lets other drills have the ports.
func (l *lab) giveBack() {
	if l.row != nil {
		l.row.close()
	}
}

func (l *lab) writeConfig(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, l.c.Config))
	if err != nil {
		return fmt.Errorf("configuration of the proxy: %w", err)
	}
	text, err := l.vars.fill(string(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", l.c.Config, err)
	}
	if l.sc.edit != nil {
		text = l.sc.edit(text)
	}
	return os.WriteFile(l.configFile(), []byte(text), 0o644)
}

func (l *lab) configFile() string { return filepath.Join(l.run, l.c.Config) }

// spawn runs f in a goroutine of wg.
func (l *lab) spawn(wg *sync.WaitGroup, f func()) {
	wg.Go(func() { l.guard(f) })
}

// guard runs f and turns a panic into the end of the run: processes that hang
// on purpose must not outlive a fault of the drill.
func (l *lab) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.abort(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	f()
}

// healthy asks the healthy request once.
func (l *lab) healthy(ctx context.Context, patience time.Duration) bool {
	return ask(ctx, l.vars.Port, &l.c.Healthy, patience) == 200
}

// hold keeps the connection of a given-up request open.
func (l *lab) hold(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, c)
}

// release closes what hold kept: the clients of the culprit give up.
func (l *lab) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.held {
		c.close()
	}
	l.held = nil
}

// cleanUp ends every process of the run, runs the cleanup command, and removes
// the run directory. It must work after any failure, so it takes no context.
func (l *lab) cleanUp() error {
	defer l.giveBack()
	l.stopTraffic()
	if l.daemon != nil {
		l.daemon.stop()
	}
	left := l.endProcesses()
	err := l.runCleanup()
	l.keepLogs()
	if e := os.RemoveAll(l.run); err == nil {
		err = e
	}
	if len(left) > 0 {
		err = fmt.Errorf("processes of the run that would not end: %v", left)
	}
	return err
}

func (l *lab) stopTraffic() {
	if l.probing != nil {
		l.probing.stop()
	}
	if l.loadRun != nil {
		l.loadRun.stop()
	}
	if l.storm != nil {
		l.storm.stop()
	}
	if l.night != nil {
		l.night.stop()
	}
	if l.back != nil {
		l.back.stop()
	}
	if l.watch != nil {
		l.watch.stop()
	}
	l.release()
}

func (l *lab) runCleanup() error {
	if l.c.CleanupCommand == "" {
		return nil
	}
	l.master = 0
	j, err := l.shell("cleanup", l.c.CleanupCommand)
	if err != nil {
		return err
	}
	if err := j.wait(context.Background(), 30*time.Second); err != nil {
		return fmt.Errorf("cleanup_command: %w, see cleanup.log", err)
	}
	return nil
}

// keepLogs copies the error log of the proxy beside the other results.
func (l *lab) keepLogs() {
	const most = 4 << 20
	data, err := readBounded(filepath.Join(l.run, "error.log"), most)
	if err == nil && len(data) > 0 {
		_ = os.WriteFile(filepath.Join(l.out, "proxy-error.log"), data, 0o644)
	}
}
