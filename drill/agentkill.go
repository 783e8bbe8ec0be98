package drill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/watchdog/config"
	"golang.org/x/sys/unix"
)

// killAgent ends the agent with SIGKILL once its moment has come, looks at the
// ledger that it leaves behind, and starts a new agent.
func (r *runner) killAgent(ctx context.Context, now time.Time) error {
	l := r.lab
	if r.sc.kill == 0 || r.killed || now.Sub(l.trigger) < r.moment {
		return nil
	}
	r.killed = true
	r.say("note", "SIGKILL for the agent")
	l.brood.signal(l.daemon.job.cmd.Process.Pid, unix.SIGKILL)
	<-l.daemon.job.done
	if err := ledgerIsSound(filepath.Join(l.run, "spinguard", "ledger")); err != nil {
		r.rec.problems = append(r.rec.problems, "after the agent was killed: "+err.Error())
	}
	if err := pause(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	if err := l.startAgent(ctx, r.opt.Binary, config.Mode(r.opt.Mode)); err != nil {
		return err
	}
	r.say("note", "a new agent is there")
	return nil
}

// momentOf chooses when to kill: anywhere up to the limit.
func momentOf(limit time.Duration) time.Duration {
	if limit == 0 {
		return 0
	}
	return rand.N(limit)
}

// ledgerIsSound says whether the ledger is valid, or absent.
func ledgerIsSound(path string) error {
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return nil
	}
	led, err := balancer.OpenLedger(path)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer func() { _ = led.Close() }()
	if _, err := led.List(time.Now()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}
