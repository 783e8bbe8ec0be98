package bpf

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// onlineCPUs reads which CPUs can run events.
func onlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	return parseCPUs(strings.TrimSpace(string(text)))
}

// parseCPUs reads a list such as "0-3,8".
func parseCPUs(list string) ([]int, error) {
	var cpus []int
	for _, part := range strings.Split(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("list of CPUs %q: %q is not a number or a range", list, part)
		}
		for cpu := a; cpu <= b; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
