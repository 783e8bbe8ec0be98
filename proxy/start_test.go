package proxy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gate is a named pipe: who reads it waits until the test opens the gate.
func gate(t *testing.T) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	opened := false
	open = func() {
		if opened {
			return
		}
		opened = true
		// Both ends, so that opening does not wait for a reader.
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = f.Close() })
		fmt.Fprint(f, "go\ngo\ngo\ngo\n")
	}
	t.Cleanup(open)
	return path, open
}

// A worker in init_worker is a worker already, whatever its title; it is not
// started before it has the title that nginx gives it at the end.
func TestWorkerInInitWorkerIsNotStarted(t *testing.T) {
	path, open := gate(t)
	s := startNginx(t, nginxOptions{lua: true, main: "worker_processes 1;",
		http: fmt.Sprintf(`init_worker_by_lua_block { io.open(%q):read("*l") }`, path)})
	f := newFinder(t)
	p := waitProxy(t, f, s.pid, "a worker", func(p *Proxy) bool { return len(p.Workers) == 1 })
	w := p.Workers[0]
	if w.Started || w.Exiting {
		t.Errorf("worker %+v before the end of init_worker", w)
	}
	open()
	p = waitProxy(t, f, s.pid, "the worker's start", started(1))
	if p.Workers[0].PID != w.PID {
		t.Errorf("worker %d, want %d", p.Workers[0].PID, w.PID)
	}
}

// A process that reads its configuration is no proxy yet, and "nginx -t" will
// never be one.
func TestReaderOfConfigurationIsNoProxy(t *testing.T) {
	path, open := gate(t)
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: need(t, "nginx")}
	s.write("nginx.conf", fmt.Sprintf(nginxConf, s.dir, s.port, luaModules(t)+"daemon off; worker_processes 1;",
		fmt.Sprintf(`init_by_lua_block { io.open(%q):read("*l") }`, path), ""))
	cmd := exec.Command(s.exe, "-p", s.dir, "-c", s.dir+"/nginx.conf")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer s.stop()
	pid := cmd.Process.Pid
	f := newFinder(t)
	eventually(t, "init_by_lua", func() bool {
		if p := scan(t, f, pid); p != nil {
			t.Fatalf("a starting nginx was taken for the proxy %+v", p)
		}
		b, _ := os.ReadFile(procPath(pid, "syscall"))
		call, ok := parseSyscall(b)
		return ok && strings.HasPrefix(SyscallName(call.Number), "open")
	})
	if p := scan(t, f, pid); p != nil {
		t.Errorf("a starting nginx was taken for the proxy %+v", p)
	}
	if _, ok := f.known[pid].watched.(*nginxProcess); !ok {
		t.Error("the process was not seen as nginx, so the test proves nothing")
	}
	open()
	waitProxy(t, f, pid, "a worker", started(1))
}

func TestFindsNginxInOtherPIDNamespace(t *testing.T) {
	unshare := need(t, "unshare")
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: need(t, "nginx")}
	s.write("nginx.conf", fmt.Sprintf(nginxConf, s.dir, s.port, "worker_processes 2; daemon off;", "", ""))
	cmd := exec.Command(unshare, "-p", "-f", "--kill-child", s.exe, "-p", s.dir, "-c", s.dir+"/nginx.conf")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer s.stop()
	t.Cleanup(s.stop)
	s.waitServing()
	f := newFinder(t)
	eventually(t, "both workers", func() bool {
		proxies, err := f.Scan()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range proxies {
			if p.Prefix == s.dir+"/" {
				return p.Master != 1 && started(2)(&p)
			}
		}
		return false
	})
	if innerPID(masterIn(t, f, s.dir)) != 1 {
		t.Error("the master is not pid 1 of its namespace, so the test proves nothing")
	}
}

func masterIn(t *testing.T, f *Finder, dir string) int {
	t.Helper()
	proxies, _ := f.Scan()
	for _, p := range proxies {
		if p.Prefix == dir+"/" {
			return p.Master
		}
	}
	t.Fatal("no proxy")
	return 0
}

const goProxy = `package main

import ("net"; "os"; "time")

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil { panic(err) }
	defer l.Close()
	time.Sleep(time.Hour)
}
`

func TestFindsGoProxy(t *testing.T) {
	goTool := need(t, "go")
	for module, want := range map[string]string{
		"github.com/caddyserver/caddy/v2": "caddy", "github.com/traefik/traefik/v3": "traefik", "example.com/other": "",
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"main.go": goProxy, "go.mod": "module " + module + "\n\ngo 1.22\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		build := exec.Command(goTool, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", "server", ".")
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		listen := fmt.Sprintf("127.0.0.1:%d", freePort(t))
		cmd := exec.Command(filepath.Join(dir, "server"), listen)
		cmd.Stderr = os.Stderr // why it does not serve, such as a port that is taken
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		checkGo(t, cmd.Process.Pid, want, listen)
	}
}

func checkGo(t *testing.T, pid int, want, listen string) {
	t.Helper()
	f := newFinder(t)
	if want == "" {
		time.Sleep(50 * time.Millisecond)
		if p := scan(t, f, pid); p != nil {
			t.Errorf("%+v is no proxy", p)
		}
		return
	}
	p := waitProxy(t, f, pid, want, func(*Proxy) bool { return true })
	if p.Kind != Go || !strings.HasPrefix(p.Version, want+"/") || p.Name != want+"@"+listen || len(p.Workers) != 1 {
		t.Errorf("%+v, want %s at %s", p, want, listen)
	}
}

// A pid is looked at again once it executes something else: at once if it is
// new or its children are workers, else within some scans.
func TestFindsProxyAfterExec(t *testing.T) {
	for _, c := range []struct {
		name, main    string
		before, after int // scans before and after it becomes nginx
	}{
		{"new", "master_process off;", 1, 1},
		{"old", "master_process off;", youngScans + 2, recheckEvery},
		{"old with workers", "worker_processes 1;", youngScans + 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, open := gate(t)
			s := &server{t: t, dir: t.TempDir(), port: freePort(t), exe: need(t, "nginx")}
			s.write("nginx.conf", fmt.Sprintf(nginxConf, s.dir, s.port, "daemon off;"+c.main, "", ""))
			cmd := exec.Command("sh", "-c", `read x < "$0"; exec "$@"`, path, s.exe, "-p", s.dir, "-c", s.dir+"/nginx.conf")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Wait() }()
			defer s.stop()
			f := newFinder(t)
			for range c.before {
				if p := scan(t, f, cmd.Process.Pid); p != nil {
					t.Fatalf("a shell was taken for %+v", p)
				}
			}
			open()
			s.waitServing()
			eventually(t, "the event loop", func() bool {
				workers := children(cmd.Process.Pid)
				return hasEventLoop(cmd.Process.Pid) || len(workers) > 0 && titled(workers[0])
			})
			checkFoundIn(t, f, cmd.Process.Pid, c.after)
		})
	}
}

func checkFoundIn(t *testing.T, f *Finder, pid, scans int) {
	t.Helper()
	for range scans {
		if p := scan(t, f, pid); p != nil {
			if p.MasterGone {
				t.Errorf("%+v has a master", p)
			}
			return
		}
	}
	t.Errorf("not found in %d scans", scans)
}
