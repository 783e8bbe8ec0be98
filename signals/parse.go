// Package signals reads what the host says about trouble of its proxies before
// it shows, or beside it: file descriptors that run out, listen queues that
// overflow, connects that fail or time out, connections that pile up towards
// one upstream peer, workers that are started anew. It only reads /proc and the
// kernel's socket tables; it attaches nothing.
package signals

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const maxText = 1 << 20

// ParseCounters reads the form of /proc/net/netstat and /proc/net/snmp: lines
// in pairs, one with names and one with values. Keys are "TcpExt.ListenDrops".
func ParseCounters(r io.Reader) (map[string]uint64, error) {
	counters := map[string]uint64{}
	lines := bufio.NewScanner(io.LimitReader(r, maxText))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		names := strings.Fields(lines.Text())
		if len(names) == 0 {
			continue
		}
		if !lines.Scan() {
			return nil, fmt.Errorf("kernel counters: names %.20q without values", names[0])
		}
		values := strings.Fields(lines.Text())
		if len(values) != len(names) || values[0] != names[0] {
			return nil, fmt.Errorf("kernel counters: %d values for %d names of %.20q", len(values), len(names), names[0])
		}
		group := strings.TrimSuffix(names[0], ":")
		for i, name := range names[1:] {
			// Some are -1: no limit. Those are no counters.
			if v, err := strconv.ParseUint(values[i+1], 10, 64); err == nil {
				counters[group+"."+name] = v
			}
		}
	}
	return counters, lines.Err()
}

// ParseOpenFiles reads the soft limit of open files from /proc/PID/limits; no
// limit is math.MaxUint64.
func ParseOpenFiles(r io.Reader) (uint64, error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxText))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "Max open files")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return 0, errors.New("limits: line of open files: cut")
		}
		if fields[0] == "unlimited" {
			return math.MaxUint64, nil
		}
		return strconv.ParseUint(fields[0], 10, 64)
	}
	return 0, errors.Join(errors.New("limits: no line of open files"), lines.Err())
}

// ParseEpoll reads the descriptors that an epoll watches from its
// /proc/PID/fdinfo/N: "tfd:        6 events: ...".
func ParseEpoll(r io.Reader) []string {
	var list []string
	lines := bufio.NewScanner(io.LimitReader(r, maxText))
	for lines.Scan() && len(list) < maxFDs {
		if rest, ok := strings.CutPrefix(lines.Text(), "tfd:"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				list = append(list, fields[0])
			}
		}
	}
	return list
}
