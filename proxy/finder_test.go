package proxy

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

func TestFindsNginx(t *testing.T) {
	s := startNginx(t, nginxOptions{})
	f := newFinder(t)
	p := waitProxy(t, f, s.pid, "two workers", started(2))
	checkNginx(t, s, p)
}

func checkNginx(t *testing.T, s *server, p *Proxy) {
	t.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", s.port)
	if p.Kind != Nginx || p.ID != fmt.Sprintf("nginx-%d", s.pid) || !strings.HasPrefix(p.Version, "nginx/1.") {
		t.Errorf("kind %q, id %q, version %q", p.Kind, p.ID, p.Version)
	}
	if p.ConfPath != s.dir+"/nginx.conf" || p.Prefix != s.dir+"/" {
		t.Errorf("configuration %q, prefix %q, want those in %s", p.ConfPath, p.Prefix, s.dir)
	}
	if len(p.Listen) != 1 || p.Listen[0] != listen || p.Name != "nginx@"+listen {
		t.Errorf("listen %q, name %q, want %s", p.Listen, p.Name, listen)
	}
	for i, w := range p.Workers {
		if w.Index != i || w.TID != w.PID || w.Master != s.pid && s.pid != w.PID || w.Exiting {
			t.Errorf("worker %d: %+v", i, w)
		}
		checkProgress(t, w)
	}
}

// checkProgress holds the progress word against what it must be: milliseconds
// of the monotonic clock, so less than the uptime.
func checkProgress(t *testing.T, w Worker) {
	t.Helper()
	mem, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	msec, err := procmem.Uint64(mem, w.Progress.Addr)
	if err != nil || w.Progress.Size != 8 || msec == 0 || msec > 1<<42 {
		t.Errorf("progress of %d: %d (%v) at %+v", w.PID, msec, err, w.Progress)
	}
}

func TestFindsRenamedNginx(t *testing.T) {
	s := startNginx(t, nginxOptions{exe: copyExe(t, need(t, "nginx"), "frontdoor")})
	p := waitProxy(t, newFinder(t), s.pid, "two workers", started(2))
	checkNginx(t, s, p)
	if p.Exe != s.exe || p.ExeDeleted {
		t.Errorf("executable %q deleted=%v, want %q", p.Exe, p.ExeDeleted, s.exe)
	}
}

func TestFindsNginxWhoseFileIsGone(t *testing.T) {
	s := startNginx(t, nginxOptions{exe: copyExe(t, need(t, "nginx"), "nginx")})
	if err := os.Remove(s.exe); err != nil {
		t.Fatal(err)
	}
	p := waitProxy(t, newFinder(t), s.pid, "two workers", started(2))
	checkNginx(t, s, p)
	if p.Exe != s.exe || !p.ExeDeleted {
		t.Errorf("executable %q deleted=%v, want %q deleted", p.Exe, p.ExeDeleted, s.exe)
	}
}

func TestFindsNginxInOtherMountNamespace(t *testing.T) {
	unshare := need(t, "unshare")
	exe := copyExe(t, need(t, "nginx"), "nginx")
	hidden := t.TempDir()
	s := startNginx(t, nginxOptions{exe: hidden + "/inner", args: []string{unshare, "-m", "sh", "-c",
		`mount -t tmpfs none ` + hidden + ` && cp ` + exe + ` ` + hidden + `/inner && exec "$@"`, "sh"}})
	if _, err := os.Stat(s.exe); err == nil {
		t.Fatal("the executable can be seen from outside")
	}
	checkNginx(t, s, waitProxy(t, newFinder(t), s.pid, "two workers", started(2)))
}

func TestFindsSingleProcessNginx(t *testing.T) {
	s := startNginx(t, nginxOptions{main: "master_process off; daemon on; worker_processes 1;"})
	p := waitProxy(t, newFinder(t), s.pid, "one worker", started(1))
	checkNginx(t, s, p)
	if w := p.Workers[0]; w.PID != s.pid || w.Master != 0 {
		t.Errorf("worker %+v, want the process %d itself without a master", w, s.pid)
	}
}

func TestHelpersAreNoWorkers(t *testing.T) {
	s := startNginx(t, nginxOptions{http: "proxy_cache_path cache keys_zone=z:1m;"})
	f := newFinder(t)
	eventually(t, "a cache manager and two workers", func() bool {
		p := scan(t, f, s.pid)
		return p != nil && started(2)(p) && helpers(f, s.pid) > 0
	})
}

func helpers(f *Finder, master int) (count int) {
	for _, p := range f.known {
		if n, ok := p.watched.(*nginxProcess); ok && n.parent == master && n.vars.role == roleHelper {
			count++
		}
	}
	return count
}

func TestFollowsReload(t *testing.T) {
	s := startNginx(t, nginxOptions{})
	f := newFinder(t)
	before := waitProxy(t, f, s.pid, "two workers", started(2))
	port := freePort(t)
	conf, err := os.ReadFile(s.dir + "/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("listen 127.0.0.1:%d; listen 127.0.0.1:%d;", s.port, port)
	s.write("nginx.conf", strings.Replace(string(conf), fmt.Sprintf("listen 127.0.0.1:%d;", s.port), more, 1))
	kill(t, s.pid, syscall.SIGHUP)
	after := waitProxy(t, f, s.pid, "two new workers", func(p *Proxy) bool {
		return started(2)(p) && p.Workers[0].PID != before.Workers[0].PID && p.Workers[1].PID != before.Workers[1].PID
	})
	if len(after.Listen) != 2 || after.Name != before.Name {
		t.Errorf("listen %q, name %q after a reload that adds an address; name before: %q", after.Listen, after.Name, before.Name)
	}
}

func TestFollowsKilledWorker(t *testing.T) {
	s := startNginx(t, nginxOptions{})
	f := newFinder(t)
	before := waitProxy(t, f, s.pid, "two workers", started(2))
	victim := before.Workers[0]
	kill(t, victim.PID, syscall.SIGKILL)
	after := waitProxy(t, f, s.pid, "a successor", func(p *Proxy) bool {
		return started(2)(p) && p.Workers[0].PID != victim.PID && p.Workers[1].PID != victim.PID
	})
	if after.Workers[0].Index != victim.Index || after.Workers[1].PID != before.Workers[1].PID {
		t.Errorf("workers %+v after worker %d of %+v was killed", after.Workers, victim.Index, before.Workers)
	}
}

func TestKeepsWorkersWithoutMaster(t *testing.T) {
	s := startNginx(t, nginxOptions{})
	f := newFinder(t)
	waitProxy(t, f, s.pid, "two workers", started(2))
	kill(t, s.pid, syscall.SIGKILL)
	p := waitProxy(t, f, s.pid, "the orphans", func(p *Proxy) bool { return p.MasterGone })
	checkNginx(t, s, p)
	if !started(2)(p) {
		t.Errorf("workers %+v, want both", p.Workers)
	}
}

func TestFollowsBinaryUpgrade(t *testing.T) {
	s := startNginx(t, nginxOptions{exe: copyExe(t, need(t, "nginx"), "nginx")})
	f := newFinder(t)
	old := waitProxy(t, f, s.pid, "two workers", started(2))
	// The package manager replaces the file: another inode under the same path.
	text, err := os.ReadFile(s.exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.exe+".new", text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.exe+".new", s.exe); err != nil {
		t.Fatal(err)
	}
	kill(t, s.pid, syscall.SIGUSR2)
	eventually(t, "the old pid file", func() bool {
		_, err := os.Stat(s.dir + "/nginx.pid.oldbin")
		return err == nil
	})
	pid := s.readPID("nginx.pid")
	p := waitProxy(t, f, pid, "two new workers", started(2))
	if p.Upgraded != s.pid || p.Name != old.Name {
		t.Errorf("upgrade of %d named %q, want %d named %q", p.Upgraded, p.Name, s.pid, old.Name)
	}
	if both := scan(t, f, s.pid); both == nil || !started(2)(both) {
		t.Errorf("the old master: %+v, want its two workers", both)
	}
	kill(t, s.pid, syscall.SIGQUIT)
	eventually(t, "the end of the old master", func() bool { return scan(t, f, s.pid) == nil })
	last := waitProxy(t, f, pid, "its successor alone", started(2))
	if last.Starter != s.pid {
		t.Errorf("afterwards started by %d, want the old master %d", last.Starter, s.pid)
	}
	if last.Upgraded != 0 || last.Name != old.Name {
		t.Errorf("afterwards upgrade of %d named %q, want none named %q", last.Upgraded, last.Name, old.Name)
	}
}
