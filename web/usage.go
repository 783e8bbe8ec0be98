package web

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Usage returns the CPU time and the resident bytes of this process. What
// cannot be read is 0.
func Usage() (cpuSeconds float64, residentBytes int64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		cpuSeconds = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return cpuSeconds, 0
	}
	if f := strings.Fields(string(data)); len(f) > 1 {
		if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			residentBytes = pages * int64(os.Getpagesize())
		}
	}
	return cpuSeconds, residentBytes
}

// descriptors returns how many files a process has open, and its soft limit.
func descriptors(pid int) (open, most float64, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	most, err = softLimit(dir + "/limits")
	if err != nil {
		return 0, 0, err
	}
	// Since Linux 6.2 the size of the folder is the number of entries; before,
	// it is 0 and they have to be counted.
	if fi, err := os.Stat(dir + "/fd"); err == nil && fi.Size() > 0 {
		return float64(fi.Size()), most, nil
	}
	entries, err := os.ReadDir(dir + "/fd")
	return float64(len(entries)), most, err
}

func softLimit(file string) (float64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "Max open files")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			if f[0] == "unlimited" {
				return math.Inf(1), nil
			}
			return strconv.ParseFloat(f[0], 64)
		}
	}
	return 0, fmt.Errorf("%s: no line of open files", file)
}
