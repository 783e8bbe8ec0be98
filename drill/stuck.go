package drill

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// stuckWorkers looks at the workers for a while, without asking the agent, and
// returns a sentence for each that did nothing but compute, or that slept
// elsewhere than in its event wait, all the time.
func (l *lab) stuckWorkers(window time.Duration) []string {
	looks := map[int]*look{}
	for _, pid := range l.workers() {
		looks[pid] = newLook(pid)
	}
	for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, k := range looks {
			k.take()
		}
	}
	var out []string
	for _, pid := range l.workers() {
		if k := looks[pid]; k != nil {
			if state := k.state(window); state != "" {
				out = append(out, fmt.Sprintf("worker %d is %s", pid, state))
			}
		}
	}
	return out
}

// look is what /proc says of one process over a window of time.
type look struct {
	pid                                      int
	taken, running, asleep, stopped, waiting int
	switches                                 int64
	cpu                                      time.Duration
}

func newLook(pid int) *look {
	return &look{pid: pid, switches: voluntary(pid), cpu: cpuTime(pid)}
}

func (k *look) take() {
	s, err := readStat(k.pid)
	if err != nil {
		return
	}
	k.taken++
	switch s.state {
	case 'R':
		k.running++
	case 'S', 'D':
		k.asleep++
	case 'T', 't':
		k.stopped++
	}
	if inEventWait(k.pid) {
		k.waiting++
	}
}

func (k *look) state(window time.Duration) string {
	share := float64(cpuTime(k.pid)-k.cpu) / float64(window)
	switches := voluntary(k.pid) - k.switches
	switch {
	case k.taken < 5 || k.waiting > 0:
		return ""
	case k.stopped*10 >= k.taken*9:
		return "stopped"
	case k.running*20 >= k.taken*19 && switches == 0 && share >= 0.10:
		return "computing without an end"
	case k.asleep*10 >= k.taken*9 && share < 0.10:
		return "asleep outside its event wait"
	}
	return ""
}

// The event waits of x86-64 and of arm64.
var eventWaits = map[string]bool{
	"x86_64/232": true, "x86_64/281": true, "x86_64/441": true,
	"aarch64/22": true, "aarch64/441": true,
}

func inEventWait(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	if err != nil {
		return false
	}
	nr, _, _ := strings.Cut(string(data), " ")
	return eventWaits[machine()+"/"+nr]
}

func voluntary(pid int) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("voluntary_ctxt_switches:")); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return n
		}
	}
	return 0
}

func cpuTime(pid int) time.Duration {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	first, _, _ := bytes.Cut(data, []byte(" "))
	n, _ := strconv.ParseInt(string(first), 10, 64)
	return time.Duration(n)
}
