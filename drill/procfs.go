package drill

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// procStat is what the drill needs of /proc/PID/stat.
type procStat struct {
	state   byte
	parent  int
	session int
	start   uint64 // clock ticks since boot
}

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	f := procmem.AfterComm(data)
	if len(f) < 20 {
		return procStat{}, fmt.Errorf("/proc/%d/stat: %d fields after the name, want 20", pid, len(f))
	}
	var s procStat
	s.state = f[0][0]
	s.parent, _ = strconv.Atoi(string(f[1]))
	s.session, _ = strconv.Atoi(string(f[3]))
	s.start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return s, err
}

// children returns the living children of a process, sorted.
func children(pid int) []int {
	// The kernel keeps the list of children per thread, and a thread that ends
	// hands its own to another one: read them all.
	var out []int
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		if err != nil {
			return childrenByScan(pid)
		}
		for _, f := range bytes.Fields(data) {
			if n, err := strconv.Atoi(string(f)); err == nil && lives(n) {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// childrenByScan serves kernels without CONFIG_PROC_CHILDREN.
func childrenByScan(pid int) []int {
	var out []int
	for _, n := range allPIDs() {
		if s, err := readStat(n); err == nil && s.parent == pid && s.state != 'Z' && s.state != 'X' {
			out = append(out, n)
		}
	}
	return out
}

// allPIDs returns every process of the host, sorted.
func allPIDs() []int {
	var out []int
	dir, _ := os.ReadDir("/proc")
	for _, d := range dir {
		if n, err := strconv.Atoi(d.Name()); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// lives says whether the process exists and is no zombie.
func lives(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.state != 'Z' && s.state != 'X'
}

// title returns the command line of a process with blanks between the words.
func title(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
}
