package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
)

// errorLog returns the file into which a master writes how its workers ended.
func errorLog(master int) string {
	handles, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", master))
	for _, h := range handles {
		if file, _ := os.Readlink(h); strings.HasSuffix(file, "/error.log") {
			return file
		}
	}
	return ""
}

// An agent that is killed at any step of a response, and started again, brings
// it to its end: the stuck worker is replaced, once, and no incident stays open.
func TestKilledAtEachStepOfAResponse(t *testing.T) {
	for _, step := range []string{"suspected", "captured", "quarantined", "evicted"} {
		t.Run(step, func(t *testing.T) {
			address, master := startNginx(t)
			evictions := func() int {
				log, _ := os.ReadFile(errorLog(master))
				return strings.Count(string(log), "exited on signal 9")
			}
			hook := filepath.Join(t.TempDir(), "hook")
			script := `echo "$1" >>"$0"`
			if step == "quarantined" { // by itself, the first time
				script += `; [ "$(wc -l <"$0")" -gt 1 ] || kill -KILL $PPID`
			}
			a := startAgent(t, fmt.Sprintf(`mode: enforce
masters: [%d]
thresholds: {act_after: 500ms}
culprits: [{frame: "content_by_lua(nginx.conf:11)", upstream: name, version: version}]
quarantine_hook: {command: [/bin/sh, -c, %q, %q, "{{.Upstream}} {{.Version}}"]}
`, master, script, hook))
			incidents := func() []incident.Summary {
				list, _ := a.client.Incidents(t.Context(), incident.Filter{})
				return list
			}
			verdict := func() string {
				list, err := a.client.Workers(t.Context())
				if err != nil || len(list) != 1 {
					return ""
				}
				return string(list[0].Verdict)
			}
			a.eventually("the worker is watched", func() bool { return verdict() == "healthy" })
			quick := http.Client{Timeout: 300 * time.Millisecond}
			_, _ = quick.Get("http://" + address + "/loop") // its answer is not waited for
			a.eventually("the moment to kill it", func() bool {
				switch step {
				case "suspected":
					return verdict() != "healthy"
				case "captured":
					return len(incidents()) > 0
				case "quarantined":
					_, err := a.client.Status(t.Context())
					return err != nil // it has ended
				}
				return evictions() > 0
			})
			_ = a.cmd.Process.Kill()
			_ = a.cmd.Wait()
			a.restart()
			a.eventually("the service is back, and all incidents have ended", func() bool {
				answer, err := quick.Get("http://" + address + "/")
				if err != nil {
					return false
				}
				_ = answer.Body.Close()
				for _, inc := range incidents() {
					if inc.Outcome == "" {
						return false
					}
				}
				return len(incidents()) > 0 && verdict() == "healthy"
			})
			if n := evictions(); n != 1 {
				t.Errorf("%d workers were evicted, want the one that was stuck", n)
			}
			if lines, err := os.ReadFile(hook); err != nil || !strings.HasPrefix(string(lines), "shop 7\n") {
				t.Errorf("hook: %q %v", lines, err)
			}
		})
	}
}
