package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// job is a started program. Its output goes to a file, never to a pipe: a
// daemon keeps what it inherited, and a pipe would then never end.
type job struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the program has ended
	err  error         // valid after done
}

// launch starts a program in a session of its own and takes it up in the brood.
func launch(b *brood, log string, env []string, argv ...string) (*job, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own copy
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.add(cmd.Process.Pid)
	j := &job{cmd: cmd, done: make(chan struct{})}
	go func() {
		j.err = cmd.Wait()
		close(j.done)
	}()
	return j, nil
}

// wait waits for the program to end, for the limit, or for the context.
func (j *job) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("still running after %v", limit)
	}
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// agentVariable tells the project's own scenarios where the agent is.
func (l *lab) agentVariable() string {
	if l.daemon == nil {
		return "AGENT="
	}
	return fmt.Sprintf("AGENT=%d", l.daemon.job.cmd.Process.Pid)
}

// shell starts a line for /bin/bash -c with the variables of the case.
func (l *lab) shell(what, line string) (*job, error) {
	j, err := launch(l.brood, filepath.Join(l.out, what+".log"), append(l.vars.environ(l.master, l.workers()), l.agentVariable()),
		"/bin/bash", "-c", line)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("/bin/bash: not installed, and shell lines of a case need it")
	}
	return j, err
}
