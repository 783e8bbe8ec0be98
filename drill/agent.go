package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
	"golang.org/x/sys/unix"
)

// agent is a spinguard agent that runs as a program of its own.
type agent struct {
	files agentFiles
	job   *job
	brood *brood
	web   *http.Client
	kept  bool // it outlives the scenario
}

// agentStart is how long an agent may take until it answers.
const agentStart = 20 * time.Second

// startAgent starts binary as an agent that sees only this proxy.
func (l *lab) startAgent(ctx context.Context, binary string, mode config.Mode) error {
	if l.lasting != nil {
		return l.lasting.adopt(ctx, l, binary, mode)
	}
	files, err := placeAgent(l.out, filepath.Join(l.run, "agent"))
	if err != nil {
		return err
	}
	if l.daemon, err = launchAgent(l.brood, binary, files, l.agentConfig(mode, files)); err != nil {
		return err
	}
	return l.daemon.ready(ctx, l.c.Workers, l.nginx())
}

func launchAgent(b *brood, binary string, files agentFiles, cfg config.Config) (*agent, error) {
	if err := writeAgentConfig(files.config, cfg); err != nil {
		return nil, err
	}
	a := &agent{files: files, brood: b, web: unixClient(files.socket)}
	var err error
	if a.job, err = launch(b, files.log, nil, binary, "agent", "--config", files.config); err != nil {
		return nil, fmt.Errorf("start of the agent: %w", err)
	}
	return a, nil
}

func unixClient(socket string) *http.Client {
	var d net.Dialer
	return &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return d.DialContext(ctx, "unix", socket)
			},
		},
	}
}

// ready waits until the agent answers and knows the workers.
func (a *agent) ready(ctx context.Context, workers int, nginx bool) error {
	end := time.Now().Add(agentStart)
	for {
		st, err := a.status(ctx)
		if err == nil && st.Sampler != "ok" {
			err = fmt.Errorf("its sampler says: %s", st.Sampler)
		}
		if err == nil {
			list, lerr := a.workers(ctx)
			if err = lerr; err == nil && (len(list) >= workers || !nginx && len(list) > 0) {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("it knows %d of %d workers", len(list), workers)
			}
		}
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case a.job.ended():
			return fmt.Errorf("start of the agent: it ended: %v: %s", a.job.err, a.lastWords())
		case time.Now().After(end):
			return fmt.Errorf("start of the agent: not ready after %v: %v: %s", agentStart, err, a.lastWords())
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// get asks the agent and decodes its JSON answer.
func (a *agent) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://spinguard"+path, nil)
	if err != nil {
		return err
	}
	resp, err := a.web.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("agent: %s: %s", path, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(into)
}

// stop ends the agent and waits for it, unless it is kept; it may be called
// twice.
func (a *agent) stop() {
	if a.kept {
		return
	}
	pid := a.job.cmd.Process.Pid
	a.brood.signal(pid, unix.SIGTERM)
	if err := a.job.wait(context.Background(), 10*time.Second); err != nil && !a.job.ended() {
		a.brood.signal(pid, unix.SIGKILL)
		<-a.job.done
	}
	_ = os.Remove(a.files.socket)
	if strings.HasPrefix(a.files.run, "/tmp/sg-") {
		_ = os.RemoveAll(a.files.run)
	}
}

// crashed returns why the agent is no longer there, or nil.
func (a *agent) crashed() error {
	if !a.job.ended() {
		return nil
	}
	reason := "exit 0"
	if a.job.err != nil {
		reason = a.job.err.Error()
	}
	return errors.New("the agent ended during the drill: " + reason + ": " + a.lastWords())
}

func (a *agent) lastWords() string {
	data, _ := readBounded(a.files.log, 2000)
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "it printed nothing, see " + filepath.Base(a.files.log)
	}
	return strings.ReplaceAll(text[max(0, len(text)-800):], "\n", " | ")
}
