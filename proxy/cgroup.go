package proxy

import (
	"bytes"
	"os"
	"path"
	"strings"
	"time"
)

// cgroups reads the throttling and the freezer state of a process, from
// cgroup v1, v2 or both. A nil *cgroups knows nothing.
type cgroups struct {
	membership *os.File // /proc/PID/cgroup: a process can be moved
	text       []byte   // what it said
	stats      []*os.File
	freezer    []*os.File
	buf        []byte
}

const (
	maxLevels = 16
	maxCgroup = 16 << 10
)

func openCgroups(pid int) *cgroups {
	f, err := os.Open(procPath(pid, "cgroup"))
	if err != nil {
		return nil
	}
	return &cgroups{membership: f, buf: make([]byte, maxCgroup)}
}

func (c *cgroups) close() {
	if c != nil {
		_ = c.membership.Close()
		c.closeFiles()
	}
}

func (c *cgroups) closeFiles() {
	for _, f := range append(c.stats, c.freezer...) {
		_ = f.Close()
	}
	c.stats, c.freezer = nil, nil
}

// look returns whether the process is frozen and how long its cgroups have
// been throttled in total. A quota may sit at any level above the process.
func (c *cgroups) look() (frozen bool, throttled time.Duration) {
	if c == nil {
		return false, 0
	}
	if text := c.read(c.membership); text != nil && !bytes.Equal(text, c.text) {
		c.text = append(c.text[:0], text...)
		c.closeFiles()
		c.open(parseMembership(text), cgroupMounts())
	}
	for _, f := range c.freezer {
		frozen = frozen || isFrozen(c.read(f))
	}
	for _, f := range c.stats {
		throttled += throttledTime(c.read(f))
	}
	return frozen, throttled
}

func (c *cgroups) read(f *os.File) []byte {
	n, _ := f.ReadAt(c.buf, 0)
	if n <= 0 {
		return nil
	}
	return c.buf[:n]
}

func (c *cgroups) open(member map[string]string, mounts []cgroupMount) {
	for _, m := range mounts {
		for _, controller := range m.controllers {
			dir, ok := member[controller]
			if !ok {
				continue
			}
			if controller == "cpu" || controller == "" {
				c.stats = append(c.stats, openUpwards(m, dir, "cpu.stat")...)
			}
			if controller == "freezer" {
				c.freezer = append(c.freezer, openUpwards(m, dir, "freezer.state")...)
			}
			if controller == "" {
				c.freezer = append(c.freezer, openUpwards(m, dir, "cgroup.events")...)
			}
		}
	}
}

// openUpwards opens a file of a cgroup and of those above it, as far as the
// mount shows them.
func openUpwards(m cgroupMount, dir, name string) []*os.File {
	rel, ok := strings.CutPrefix(dir, strings.TrimSuffix(m.root, "/"))
	if !ok || strings.Contains(dir, "/..") {
		return nil
	}
	var files []*os.File
	for range maxLevels {
		if f, err := os.Open(path.Join(m.point, rel, name)); err == nil {
			files = append(files, f)
		}
		if rel == "" || rel == "/" {
			break
		}
		rel = path.Dir(rel)
	}
	return files
}

// parseMembership reads lines "id:controllers:path"; v2 has no controllers.
func parseMembership(text []byte) map[string]string {
	member := make(map[string]string)
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		for _, controller := range strings.Split(f[1], ",") {
			member[controller] = f[2]
		}
	}
	return member
}

// isFrozen reads freezer.state (v1) or cgroup.events (v2).
func isFrozen(b []byte) bool {
	return bytes.HasPrefix(b, []byte("FROZEN")) || bytes.HasPrefix(b, []byte("FREEZING")) ||
		bytes.HasPrefix(b, []byte("frozen 1")) || bytes.Contains(b, []byte("\nfrozen 1"))
}

// throttledTime reads cpu.stat: nanoseconds in v1, microseconds in v2.
func throttledTime(b []byte) time.Duration {
	b = append([]byte("\n"), b...)
	return time.Duration(statusNumber(b, "throttled_time ")) +
		time.Duration(statusNumber(b, "throttled_usec "))*time.Microsecond
}
