package doctor

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/proxy"
)

// limits says how many file handles a worker may have, unless what its settings
// ask for says so already.
func limits(p proxy.Proxy, w proxy.Worker, settings []Finding) []Finding {
	check := p.Name + " file handles"
	soft, ok := openFiles(w.PID)
	if !ok || slices.ContainsFunc(settings, func(f Finding) bool { return f.Check == check }) {
		return nil
	}
	f := Finding{Check: check, Level: OK, Found: fmt.Sprintf("%d a worker", soft)}
	if soft < 4096 {
		f.Level, f.Why, f.Remedy = Warn, "a proxied request takes two; at the limit accept and connect fail and servers flap", "worker_rlimit_nofile 65536; in nginx.conf (or LimitNOFILE=)"
	}
	return []Finding{f}
}

// openFiles returns the soft limit of a process's file handles.
func openFiles(pid int) (int, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			soft, err := strconv.Atoi(fields[0])
			return soft, err == nil
		}
	}
	return 0, false
}
