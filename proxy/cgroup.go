package proxy

import (
	"bytes"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Cgroups reads the throttling and the freezer state of watched processes, from
// cgroup v1, v2 or both. Those in the same cgroups share the files and, within
// a moment, what they say. One goroutine may use it; it holds files open for
// its watchers only.
type Cgroups struct {
	groups map[string]*cgroup // by what /proc/PID/cgroup says
	buf    []byte
}

// cgroup is a process's place in all hierarchies.
type cgroup struct {
	users     int
	stats     []int // descriptors
	freezer   []int
	read      time.Time
	frozen    bool
	throttled time.Duration
}

// membership is that of one process, which can be moved. A nil one knows nothing.
type membership struct {
	all  *Cgroups
	file int    // descriptor of /proc/PID/cgroup
	text string // what it said, the key of its group
}

const (
	maxLevels = 16
	maxCgroup = 16 << 10
	// sameMoment is for how long what was read for one worker holds for the others.
	sameMoment = 20 * time.Millisecond
)

// NewCgroups returns one without watchers.
func NewCgroups() *Cgroups {
	return &Cgroups{groups: map[string]*cgroup{}, buf: make([]byte, maxCgroup)}
}

func (c *Cgroups) member(pid int) *membership {
	fd, err := openRead(procPath(pid, "cgroup"))
	if err != nil {
		return nil
	}
	return &membership{all: c, file: fd}
}

func (m *membership) close() {
	if m != nil {
		_ = unix.Close(m.file)
		m.all.leave(m.text)
	}
}

// look returns whether the process is frozen and how long its cgroups have
// been throttled in total. A quota may sit at any level above the process.
func (m *membership) look() (frozen bool, throttled time.Duration) {
	if m == nil {
		return false, 0
	}
	if text := m.all.content(m.file); text != nil && string(text) != m.text {
		m.all.leave(m.text)
		m.text = string(text)
		m.all.join(m.text)
	}
	return m.all.look(m.all.groups[m.text])
}

func (c *Cgroups) join(text string) {
	g := c.groups[text]
	if g == nil {
		g = openCgroup(parseMembership(text), cgroupMounts())
		c.groups[text] = g
	}
	g.users++
}

func (c *Cgroups) leave(text string) {
	g := c.groups[text]
	if g == nil {
		return
	}
	if g.users--; g.users == 0 {
		g.close()
		delete(c.groups, text)
	}
}

func (c *Cgroups) look(g *cgroup) (frozen bool, throttled time.Duration) {
	if g == nil {
		return false, 0
	}
	if time.Since(g.read) < sameMoment {
		return g.frozen, g.throttled
	}
	for _, fd := range g.freezer {
		frozen = frozen || isFrozen(c.content(fd))
	}
	for _, fd := range g.stats {
		throttled += throttledTime(c.content(fd))
	}
	g.read, g.frozen, g.throttled = time.Now(), frozen, throttled
	return frozen, throttled
}

// content is what a file says, good until the next one is read.
func (c *Cgroups) content(fd int) []byte {
	n, _ := procmem.ReadStart(fd, c.buf)
	if n <= 0 {
		return nil
	}
	return c.buf[:n]
}

func (g *cgroup) close() {
	for _, fd := range append(g.stats, g.freezer...) {
		_ = unix.Close(fd)
	}
}

func openCgroup(member map[string]string, mounts []cgroupMount) *cgroup {
	g := &cgroup{}
	for _, m := range mounts {
		for _, controller := range m.controllers {
			dir, ok := member[controller]
			if !ok {
				continue
			}
			if controller == "cpu" || controller == "" {
				g.stats = append(g.stats, openUpwards(m, dir, "cpu.stat")...)
			}
			if controller == "freezer" {
				g.freezer = append(g.freezer, openUpwards(m, dir, "freezer.state")...)
			}
			if controller == "" {
				g.freezer = append(g.freezer, openUpwards(m, dir, "cgroup.events")...)
			}
		}
	}
	return g
}

// openUpwards opens a file of a cgroup and of those above it, as far as the
// mount shows them.
func openUpwards(m cgroupMount, dir, name string) []int {
	rel, ok := strings.CutPrefix(dir, strings.TrimSuffix(m.root, "/"))
	if !ok || strings.Contains(dir, "/..") {
		return nil
	}
	var files []int
	for range maxLevels {
		if fd, err := openRead(path.Join(m.point, rel, name)); err == nil {
			files = append(files, fd)
		}
		if rel == "" || rel == "/" {
			break
		}
		rel = path.Dir(rel)
	}
	return files
}

func openRead(path string) (fd int, err error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// parseMembership reads lines "id:controllers:path"; v2 has no controllers.
func parseMembership(text string) map[string]string {
	member := make(map[string]string)
	for _, line := range strings.Split(text, "\n") {
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
