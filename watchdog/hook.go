package watchdog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/template"
	"time"

	"github.com/spinguard/spinguard/watchdog/respond"
)

// hookOutputMax bounds what is kept of a hook's output.
const hookOutputMax = 4 << 10

// runHook carries a quarantine to a balancer that reads no ledger.
func (a *Agent) runHook(e *episode, until time.Time, why string) {
	h := a.cfg.Hook
	switch {
	case h.File != "":
		a.quarantined(e, until, why, appendLine(h.File, h.Line, e.culprit))
	case len(h.Command) > 0:
		e.pending = true
		go func() {
			output, err := runCommand(h.Command, h.Timeout, e.culprit)
			a.jobs <- func() {
				if output != "" {
					e.act(a.now(e), "hook", h.Command[0], "done", output)
				}
				a.quarantined(e, until, why, err)
			}
		}()
	default:
		a.quarantined(e, until, why, errNoWay)
	}
}

func fillTemplate(text string, c respond.Culprit) (string, error) {
	t, err := template.New("hook").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]string{"Proxy": c.Proxy, "Upstream": c.Upstream, "Version": c.Version})
	return b.String(), err
}

// appendLine appends one line to the hook's file, in one write. Names come
// from the memory of the proxy: a line break in one would forge a line.
func appendLine(path, text string, c respond.Culprit) error {
	line, err := fillTemplate(text, c)
	if err != nil {
		return fmt.Errorf("line of the hook: %v", err)
	}
	if strings.ContainsAny(line, "\r\n\x00") {
		return fmt.Errorf("line of the hook: %q holds a line break", line)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// runCommand runs the hook's program, without a shell, and returns what it
// printed.
func runCommand(argv []string, timeout time.Duration, c respond.Culprit) (string, error) {
	args := make([]string, len(argv))
	for i, text := range argv {
		var err error
		if args[i], err = fillTemplate(text, c); err != nil {
			return "", fmt.Errorf("argument %d of the hook: %v", i, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &limitedWriter{to: &out, left: hookOutputMax}, &limitedWriter{to: &out, left: hookOutputMax}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("%s did not end within %s", args[0], timeout)
	}
	return strings.ToValidUTF8(out.String(), "?"), err
}

// limitedWriter keeps the first bytes and swallows the rest.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.to.Write(p[:n])
	w.left -= n
	return len(p), nil
}
