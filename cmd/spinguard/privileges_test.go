package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/incident"
)

// unitCapabilities are those that the unit grants.
func unitCapabilities(t *testing.T) (list []string) {
	t.Helper()
	unit, err := os.ReadFile("../../deploy/systemd/spinguard.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindStringSubmatch(string(unit))
	if line == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	for _, name := range strings.Fields(line[1]) {
		list = append(list, strings.ToLower(strings.TrimPrefix(name, "CAP_")))
	}
	return list
}

// lastingBits are those that an agent may hold once it has started.
func lastingBits(more ...int) (m uint64) {
	for _, bit := range append(more, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH, unix.CAP_KILL) {
		m |= 1 << bit
	}
	return m
}

var heldLine = regexp.MustCompile(`(?m)^Cap(Eff|Prm|Inh|Amb):\s*([0-9a-f]+)$`)

// held returns what any thread of the process holds, in any of its sets.
func held(t *testing.T, pid int) (all uint64) {
	t.Helper()
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if len(threads) < 3 {
		t.Fatalf("%d threads", len(threads))
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended
		}
		sets := heldLine.FindAllStringSubmatch(string(text), -1)
		if len(sets) != 4 {
			t.Fatalf("%s: %d sets", file, len(sets))
		}
		for _, set := range sets {
			bits, err := strconv.ParseUint(set[2], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			all |= bits
		}
	}
	return all
}

// An agent that has dropped what only its start needed, started by root and as
// the unit starts it, still takes evidence, quarantines, evicts and verifies.
func TestCapabilitiesAreDroppedAndSuffice(t *testing.T) {
	setpriv := need(t, "setpriv")
	// CAP_BPF is kept where the kernel asks for it with each map update, and
	// CAP_SYS_ADMIN where Debian's kernels ask for it with each event.
	asked := []int{unix.CAP_BPF}
	if text, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil && strings.TrimSpace(string(text)) > "2" {
		asked = append(asked, unix.CAP_SYS_ADMIN)
	}
	for name, test := range map[string]struct {
		wrap []string
		most uint64
	}{
		"root": {nil, lastingBits(append(asked, unix.CAP_DAC_OVERRIDE)...)},
		"unit": {[]string{setpriv, "--no-new-privs", "--bounding-set=-all,+" + strings.Join(unitCapabilities(t), ",+")}, lastingBits(asked...)},
	} {
		t.Run(name, func(t *testing.T) {
			address, master := startNginx(t)
			hook := filepath.Join(t.TempDir(), "hook")
			a := startAgent(t, fmt.Sprintf(`mode: enforce
masters: [%d]
thresholds: {act_after: 500ms}
culprits: [{frame: "content_by_lua(nginx.conf:11)", upstream: name, version: version}]
quarantine_hook: {file: %q}
`, master, hook), test.wrap...)
			a.eventually("the agent says that it dropped capabilities", func() bool { return strings.Contains(a.log.String(), "capabilities dropped") })
			got := held(t, a.cmd.Process.Pid)
			if got&^test.most != 0 || got&lastingBits() != lastingBits() {
				t.Errorf("holds %#x, want %#x of at most %#x", got, lastingBits(), test.most)
			}
			a.eventually("the worker is watched", func() bool {
				list, err := a.client.Workers(t.Context())
				return err == nil && len(list) == 1
			})
			quick := http.Client{Timeout: 300 * time.Millisecond}
			_, _ = quick.Get("http://" + address + "/loop") // its answer is not waited for
			a.eventually("the incident is over", func() bool {
				list, err := a.client.Incidents(t.Context(), incident.Filter{})
				return err == nil && len(list) == 1 && list[0].Outcome == incident.Recovered
			})
			list, _ := a.client.Incidents(t.Context(), incident.Filter{})
			inc, err := a.client.Incident(t.Context(), list[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if inc.WorkersEvicted != 1 || inc.Evidence.Request != "GET /loop HTTP/1.1" || !strings.Contains(strings.Join(inc.Evidence.Frames, " "), "pick") {
				t.Errorf("evicted %d, request %q, frames %q", inc.WorkersEvicted, inc.Evidence.Request, inc.Evidence.Frames)
			}
			if line, err := os.ReadFile(hook); err != nil || string(line) != "shop 7\n" {
				t.Errorf("hook: %q %v", line, err)
			}
		})
	}
}
