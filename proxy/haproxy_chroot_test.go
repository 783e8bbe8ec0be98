package proxy

import (
	"fmt"
	"os"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Debian's configuration has HAProxy change its root directory, and then its
// configuration can't be read through that root.
func TestReadsConfigurationOfHAProxyInAChroot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("chroot is for root only")
	}
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: need(t, "haproxy")}
	jail := t.TempDir()
	s.write("haproxy.cfg", fmt.Sprintf("global\n  chroot "+jail+haproxyConfig[len("\nglobal"):], s.dir, s.port, 2, freePort(t)))
	s.run(s.exe, "-D", "-f", s.dir+"/haproxy.cfg", "-p", s.dir+"/haproxy.pid")
	t.Cleanup(s.stop)
	s.pid = s.readPID("haproxy.pid")
	s.waitServing()
	p := waitProxy(t, newFinder(t), s.pid, "two stats sockets", func(p *Proxy) bool { return len(p.StatsSock) == 2 })
	if _, err := NewHAProxyMap(openMemory(t, s.pid), p.Workers[0]); err != nil {
		t.Error(err)
	}
}

func openMemory(t *testing.T, pid int) *procmem.Process {
	t.Helper()
	mem, err := procmem.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Close() })
	return mem
}
