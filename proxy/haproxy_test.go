package proxy

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const haproxyConfig = `
global
  nbthread %[3]d
  stats socket %[1]s/stats.sock level admin
  stats socket ipv4@127.0.0.1:%[4]d level admin
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind 127.0.0.1:%[2]d
  http-request return status 200 content-type text/plain string "pong"
`

func startHAProxy(t *testing.T, threads int, args ...string) (s *server, statsPort int) {
	t.Helper()
	s = &server{t: t, dir: t.TempDir(), port: freePort(t), exe: need(t, "haproxy")}
	statsPort = freePort(t)
	s.write("haproxy.cfg", fmt.Sprintf(haproxyConfig, s.dir, s.port, threads, statsPort))
	s.args = append([]string{s.exe, "-D", "-f", s.dir + "/haproxy.cfg", "-p", s.dir + "/haproxy.pid"}, args...)
	s.run(s.args...)
	t.Cleanup(s.stop)
	s.pid = s.readPID("haproxy.pid")
	s.waitServing()
	return s, statsPort
}

func threads(n int) func(*Proxy) bool {
	return func(p *Proxy) bool { return len(p.Workers) == n }
}

func TestFindsHAProxyThreads(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		s, stats := startHAProxy(t, n)
		p := waitProxy(t, newFinder(t), s.pid, fmt.Sprintf("%d threads", n), threads(n))
		sock := []string{fmt.Sprintf("127.0.0.1:%d", stats), "unix:" + s.dir + "/stats.sock"}
		if got := strings.Join(p.StatsSock, " "); got != strings.Join(sock, " ") {
			t.Errorf("stats sockets %s, want %s", got, sock)
		}
		listen := sorted(append(sock, fmt.Sprintf("127.0.0.1:%d", s.port)))
		if got := strings.Join(p.Listen, " "); got != strings.Join(listen, " ") {
			t.Errorf("listen %s, want %s", got, listen)
		}
		if !strings.HasPrefix(p.Version, "haproxy/2.") || p.ConfPath != s.dir+"/haproxy.cfg" || p.Kind != HAProxy {
			t.Errorf("version %q, configuration %q", p.Version, p.ConfPath)
		}
		if p.Workers[0].TID != s.pid {
			t.Errorf("thread 0 is %d, want the process %d", p.Workers[0].TID, s.pid)
		}
		checkTurns(t, p, fmt.Sprintf("127.0.0.1:%d", stats))
	}
}

// checkTurns holds the words against what HAProxy itself says of its threads.
func checkTurns(t *testing.T, p *Proxy, stats string) {
	t.Helper()
	mem, err := procmem.Open(p.Workers[0].PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	words := func() (list []uint32) {
		for _, w := range p.Workers {
			v, err := procmem.Uint32(mem, w.Progress.Addr)
			if err != nil || w.Progress.Size != 4 {
				t.Fatal(w.Progress, err)
			}
			list = append(list, v)
		}
		return list
	}
	before := words()
	said := loopsOf(t, stats, len(before))
	after := words()
	for i := range said {
		if before[i] > said[i] || said[i] > after[i] {
			t.Errorf("thread %d turned %d times; its word was %d before and %d after", i, said[i], before[i], after[i])
		}
	}
}

// loopsOf reads "loops: total [ first second ]" of "show activity".
func loopsOf(t *testing.T, stats string, threads int) []uint32 {
	t.Helper()
	c, err := net.Dial("tcp", stats)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "show activity\n")
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "\nloops:")
	line, _, _ = strings.Cut(line, "\n")
	f := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(line))
	if threads > 1 && len(f) > 0 {
		f = f[1:] // the total
	}
	if len(f) != threads {
		t.Fatalf("loops of %d threads in %q", threads, text)
	}
	list := make([]uint32, threads)
	for i := range list {
		v, err := strconv.ParseUint(f[i], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = uint32(v)
	}
	return list
}

// A thread in a loop stands still, the others turn: so the words belong to the
// threads that they are said to belong to.
func TestHAProxyProgressBelongsToThread(t *testing.T) {
	s, stats := startHAProxy(t, 3)
	p := waitProxy(t, newFinder(t), s.pid, "threads", threads(3))
	mem, err := procmem.Open(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	stuck := stuckThread(t, p, fmt.Sprintf("127.0.0.1:%d", stats))
	before, _ := procmem.Uint32(mem, stuck.Progress.Addr)
	checkOthersTurn(t, s, p, stuck)
	if after, _ := procmem.Uint32(mem, stuck.Progress.Addr); after != before {
		t.Errorf("thread %d is in a loop but its word went from %d to %d", stuck.Index, before, after)
	}
}

func TestHAProxyMasterIsNoWorker(t *testing.T) {
	s, _ := startHAProxy(t, 2, "-W", "-S", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	f := newFinder(t)
	p := waitProxy(t, f, s.pid, "two threads", threads(2))
	for _, w := range p.Workers {
		if w.PID == s.pid || w.Master != s.pid {
			t.Errorf("worker %+v of master %d", w, s.pid)
		}
	}
	old := p.Workers[0].PID
	kill(t, s.pid, syscall.SIGUSR2)
	waitProxy(t, f, s.pid, "new threads after a reload", func(p *Proxy) bool {
		return len(p.Workers) == 2 && p.Workers[0].PID != old && !p.Workers[0].Exiting
	})
}

func TestFindsRenamedHAProxy(t *testing.T) {
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: copyExe(t, need(t, "haproxy"), "edge")}
	s.write("x.cfg", fmt.Sprintf(haproxyConfig, s.dir, s.port, 2, freePort(t)))
	s.run(s.exe, "-D", "-C", s.dir, "-p", s.dir+"/haproxy.pid", "--", "x.cfg")
	t.Cleanup(s.stop)
	s.pid = s.readPID("haproxy.pid")
	p := waitProxy(t, newFinder(t), s.pid, "two threads", threads(2))
	if p.ConfPath != filepath.Join(s.dir, "x.cfg") || len(p.StatsSock) != 2 {
		t.Errorf("configuration %q, stats sockets %q", p.ConfPath, p.StatsSock)
	}
}

func TestSlotByExtent(t *testing.T) {
	for _, c := range []struct{ size, slot, threads, used int }{
		{8192, 128, 3, 100}, {8192, 128, 2, 128}, {8192, 128, 64, 4}, {262144, 256, 12, 9}, {12288, 192, 5, 60},
	} {
		activity := make([]byte, c.size)
		for i := range c.threads {
			for j := range c.used {
				activity[i*c.slot+j] = 1
			}
		}
		if got := slotByExtent(activity, c.threads); got != c.slot {
			t.Errorf("slot of %+v: %d", c, got)
		}
	}
}

func TestLoopCounter(t *testing.T) {
	activity := make([]byte, 1024)
	if got := loopCounter(activity, 128, 3); got != -1 {
		t.Errorf("word %d of an array in which nothing is set", got)
	}
	activity[128+20], activity[256+8] = 1, 1 // thread 0 has not turned yet
	if got := loopCounter(activity, 128, 3); got != 8 {
		t.Errorf("word %d, want 8", got)
	}
}
