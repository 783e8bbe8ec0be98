package signals

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Files is how many descriptors a worker has open, and may have.
type Files struct {
	Open, Limit uint64
	// Exhaustion is when the limit is reached if it goes on like this; 0: not
	// foreseeable.
	Exhaustion time.Duration
}

// trend keeps the open files of one worker over the last minute.
type trend struct {
	at   []time.Time
	open []float64

	limit  uint64
	rounds int // since the limit was read
}

const (
	trendMost  = 12
	trendLeast = 5
)

func (t *trend) add(at time.Time, open uint64) {
	if len(t.at) == trendMost {
		t.at, t.open = t.at[1:], t.open[1:]
	}
	t.at, t.open = append(t.at, at), append(t.open, float64(open))
}

// slope is the rise per second of the straight line through the points.
func (t *trend) slope() float64 {
	n := float64(len(t.at))
	if len(t.at) < trendLeast {
		return 0
	}
	var sx, sy, sxx, sxy float64
	for i, at := range t.at {
		x, y := at.Sub(t.at[0]).Seconds(), t.open[i]
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

func (t *trend) exhaustion(f Files) time.Duration {
	rise := t.slope()
	if rise < 0.1 || f.Limit == math.MaxUint64 {
		return 0
	}
	if f.Open >= f.Limit {
		return time.Second
	}
	seconds := float64(f.Limit-f.Open) / rise
	if seconds > 24*3600 {
		return 0
	}
	return max(time.Second, time.Duration(seconds*float64(time.Second)))
}

// openFiles counts the descriptors of a process. Since Linux 6.2 the size of
// the directory is their number. The limit hardly ever changes: it is read
// again once a minute, and each time while much of it is used.
func (c *Collector) openFiles(pid int, t *trend) (Files, error) {
	dir := filepath.Join(c.proc, fmt.Sprint(pid))
	var f Files
	st, err := os.Stat(dir + "/fd")
	if err != nil {
		return f, err
	}
	if f.Open = uint64(st.Size()); f.Open == 0 {
		entries, err := os.ReadDir(dir + "/fd")
		if err != nil {
			return f, err
		}
		f.Open = uint64(len(entries))
	}
	if t.rounds++; t.limit == 0 || t.rounds > trendMost || f.Open > t.limit/4 {
		if t.limit, err = openLimit(dir); err != nil {
			return f, err
		}
		t.rounds = 0
	}
	f.Limit = t.limit
	return f, nil
}

func openLimit(dir string) (uint64, error) {
	limits, err := os.Open(dir + "/limits")
	if err != nil {
		return 0, err
	}
	defer func() { _ = limits.Close() }()
	return ParseOpenFiles(limits)
}

const maxFDs = 4096

// holds says whether a process has a socket open, and whether its epoll waits
// for it. Listening sockets are opened first, so they have low numbers.
func (c *Collector) holds(pid int, inode uint32) (held, waits bool) {
	dir := filepath.Join(c.proc, fmt.Sprint(pid))
	want := fmt.Sprintf("socket:[%d]", inode)
	var numbers, epolls []string
	c.eachFile(pid, func(name, target string) bool {
		switch target {
		case want:
			numbers = append(numbers, name)
		case "anon_inode:[eventpoll]":
			epolls = append(epolls, name)
		}
		return true
	})
	for _, name := range epolls {
		f, err := os.Open(filepath.Join(dir, "fdinfo", name))
		if err != nil {
			continue
		}
		for _, fd := range ParseEpoll(f) {
			waits = waits || slices.Contains(numbers, fd)
		}
		_ = f.Close()
	}
	return len(numbers) > 0, waits
}

// eachFile calls for the open files of a process until told to stop.
func (c *Collector) eachFile(pid int, more func(name, target string) bool) {
	dir := filepath.Join(c.proc, fmt.Sprint(pid), "fd")
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(maxFDs)
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil && !more(name, target) {
			return
		}
	}
}
