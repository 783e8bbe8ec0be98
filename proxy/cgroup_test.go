package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// newCgroup makes a cgroup in the hierarchy of a controller ("" for v2) with a
// child in it, and returns both. The worker goes into the child.
func newCgroup(t *testing.T, controller, file string) (parent, child string) {
	t.Helper()
	for _, m := range cgroupMounts() {
		if !slices.Contains(m.controllers, controller) {
			continue
		}
		parent = filepath.Join(m.point, fmt.Sprintf("spinguard-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
		child = filepath.Join(parent, "inner")
		if err := os.MkdirAll(child, 0o755); err != nil {
			t.Skipf("cgroup: %v", err)
		}
		t.Cleanup(func() {
			eventually(t, "removal of the cgroup", func() bool {
				_ = os.Remove(child)
				return os.Remove(parent) == nil || !exists(parent)
			})
		})
		if !exists(filepath.Join(child, file)) {
			t.Skipf("%s has no %s", child, file)
		}
		return parent, child
	}
	t.Skipf("no cgroup hierarchy with controller %q", controller)
	return "", ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func set(t *testing.T, dir, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The worker moves into the cgroup after the watcher was opened; the freezer
// acts on the cgroup above it.
func TestSeesFreezer(t *testing.T) {
	for _, c := range []struct{ controller, file, freeze, thaw string }{
		{"freezer", "freezer.state", "FROZEN", "THAWED"},
		{"", "cgroup.freeze", "1", "0"},
	} {
		t.Run("controller "+c.controller, func(t *testing.T) {
			parent, child := newCgroup(t, c.controller, c.file)
			s, w := startBlocker(t)
			_ = s
			watch := newWatcher(t, w)
			waitClosely(t, watch, "a free worker", func(l Look) bool { return !l.Frozen })
			set(t, child, "cgroup.procs", strconv.Itoa(w.PID))
			set(t, parent, c.file, c.freeze)
			thawed := false
			thaw := func() {
				if !thawed {
					thawed = true
					set(t, parent, c.file, c.thaw)
				}
			}
			defer thaw()
			waitClosely(t, watch, "a frozen worker", func(l Look) bool { return l.Frozen })
			thaw()
			waitClosely(t, watch, "a free worker", func(l Look) bool { return !l.Frozen })
		})
	}
}

func TestSeesThrottling(t *testing.T) {
	for _, c := range []struct{ controller, file, quota string }{
		{"cpu", "cpu.cfs_quota_us", "2000"},
		{"", "cpu.max", "2000 100000"},
	} {
		t.Run("controller "+c.controller, func(t *testing.T) {
			parent, child := newCgroup(t, c.controller, c.file)
			s, w := startBlocker(t)
			set(t, parent, c.file, c.quota)
			set(t, child, "cgroup.procs", strconv.Itoa(w.PID))
			watch := newWatcher(t, w)
			before := waitClosely(t, watch, "the first look", func(Look) bool { return true })
			hang(t, s, "GET /spin HTTP/1.1\r\nHost: x\r\n\r\n")
			waitClosely(t, watch, "throttled time", func(l Look) bool { return l.Throttled > before.Throttled+50*time.Millisecond })
		})
	}
}

func TestParsesMounts(t *testing.T) {
	got := parseMounts(`30 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:28 / /elsewhere rw - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 /kube\040pods /sys/fs/cgroup/uni\040fied rw shared:3 - cgroup2 cgroup2 rw
nonsense - cgroup2
35 30`)
	want := []cgroupMount{
		{"/sys/fs/cgroup/cpu,cpuacct", "/", []string{"rw", "cpu", "cpuacct"}},
		{"/sys/fs/cgroup/uni fied", "/kube pods", []string{""}},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("mounts %+v, want %+v", got, want)
	}
}

// Two workers of one cgroup share its files; who moves away is told by its own,
// and the last to go closes them.
func TestWorkersShareCgroups(t *testing.T) {
	for _, controller := range []string{"cpu", ""} {
		t.Run("controller "+controller, func(t *testing.T) { shareCgroups(t, controller) })
	}
}

func shareCgroups(t *testing.T, controller string) {
	_, child := newCgroup(t, controller, "cpu.stat")
	s := startNginx(t, nginxOptions{main: "worker_processes 2;"})
	workers := waitProxy(t, newFinder(t), s.pid, "two workers", started(2)).Workers
	all := NewCgroups()
	var watchers []*Watcher
	for _, w := range workers {
		watch, err := NewWatcher(w, all)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watch.Close)
		watchers = append(watchers, watch)
	}
	groups := func() (users []int) {
		for _, watch := range watchers {
			if _, err := watch.LookClosely(); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range all.groups {
			users = append(users, g.users)
		}
		slices.Sort(users)
		return users
	}
	if got := groups(); !slices.Equal(got, []int{2}) {
		t.Fatalf("users of the cgroups: %v, want 2 of one", got)
	}
	set(t, child, "cgroup.procs", strconv.Itoa(workers[0].PID))
	if got := groups(); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("users of the cgroups after one has moved: %v, want 1 of each", got)
	}
	for _, watch := range watchers {
		watch.Close()
	}
	if len(all.groups) != 0 {
		t.Errorf("%d cgroups are open without a watcher", len(all.groups))
	}
}
