package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/proxy"
)

// limits says how many file handles a worker may have.
func limits(p proxy.Proxy, w proxy.Worker) []Finding {
	soft, ok := openFiles(w.PID)
	if !ok {
		return nil
	}
	f := Finding{Check: p.Name + " file handles", Level: OK, Found: fmt.Sprintf("%d a worker", soft)}
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
