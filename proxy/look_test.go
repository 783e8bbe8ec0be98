package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const blockers = `
location /sleep { content_by_lua_block { os.execute("sleep 5") } }
location /usleep { content_by_lua_block {
    local ffi = require "ffi"; ffi.cdef "int usleep(unsigned int);"
    while true do ffi.C.usleep(10000) end } }
location /fifo { content_by_lua_block { io.open(ngx.var.arg_path):read() } }
location /poll { content_by_lua_block {
    local ffi = require "ffi"; ffi.cdef "int poll(void *, unsigned long, int);"
    ffi.C.poll(nil, 0, 30000) } }
location /epoll { content_by_lua_block {
    local ffi = require "ffi"; ffi.cdef "int epoll_create(int); int epoll_wait(int, void *, int, int);"
    local ep = ffi.C.epoll_create(1)
    ffi.C.epoll_wait(ep, ffi.new("char[64]"), 1, 30000) } }
location /spin { content_by_lua_block { while true do end } }
location /connect { content_by_lua_block {
    local ffi = require "ffi"
    ffi.cdef "int socket(int, int, int); int connect(int, const void *, unsigned int); long read(int, void *, size_t);"
    local fd = ffi.C.socket(2, 1, 0)
    local a = ffi.new("unsigned char[16]")
    local port = tonumber(ngx.var.arg_port)
    a[0] = 2; a[2] = math.floor(port / 256); a[3] = port % 256; a[4] = 127; a[7] = 1
    ffi.C.connect(fd, a, 16)
    ffi.C.read(fd, a, 1) } }
`

func startBlocker(t *testing.T) (*server, Worker) {
	t.Helper()
	s := startNginx(t, nginxOptions{lua: true, main: "worker_processes 1;", location: blockers})
	return s, waitProxy(t, newFinder(t), s.pid, "a worker", started(1)).Workers[0]
}

func newWatcher(t testing.TB, w Worker) *Watcher {
	t.Helper()
	watch, err := NewWatcher(w, NewCgroups())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Close)
	return watch
}

// waitLook looks until ok.
func waitLook(t *testing.T, w *Watcher, what string, ok func(Look) bool) Look {
	t.Helper()
	var l Look
	eventually(t, what, func() bool {
		var err error
		if l, err = w.Look(); err != nil {
			t.Fatal(err)
		}
		return ok(l)
	})
	return l
}

func describe(t *testing.T, w Worker, l Look) Wait {
	t.Helper()
	mem, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	return DescribeWait(mem, w.PID, l)
}

func TestLooksAtIdleWorker(t *testing.T) {
	_, w := startBlocker(t)
	watch := newWatcher(t, w)
	l := waitLook(t, watch, "a repeated look", func(l Look) bool { return l.Repeated })
	if !l.InEventWait || l.Running || l.CPUTime == 0 || l.Detailed {
		t.Errorf("%+v", l)
	}
	if l, err := watch.LookClosely(); err != nil || l.State != 'S' || !l.Detailed || l.Repeated || l.Voluntary == 0 || l.Stopped || l.Frozen || l.Traced {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestLooksAtRunningWorker(t *testing.T) {
	s, w := startBlocker(t)
	watch := newWatcher(t, w)
	first := waitLook(t, watch, "an idle worker", func(l Look) bool { return l.InEventWait })
	hang(t, s, "GET /spin HTTP/1.1\r\nHost: x\r\n\r\n")
	l := waitLook(t, watch, "a busy worker", func(l Look) bool { return l.CPUTime > first.CPUTime+100*time.Millisecond })
	if !l.Running || l.InEventWait || l.Repeated || l.Syscall != -1 {
		t.Errorf("%+v", l)
	}
	kill(t, w.PID, syscall.SIGSTOP)
	stopped := waitLook(t, watch, "a stopped worker", func(l Look) bool { return l.Stopped })
	if stopped.State != 'T' {
		t.Errorf("%+v", stopped)
	}
	kill(t, w.PID, syscall.SIGCONT)
	waitLook(t, watch, "a running worker", func(l Look) bool { return l.Running })
	kill(t, w.PID, syscall.SIGKILL)
	eventually(t, "the end", func() bool {
		_, err := watch.Look()
		return errors.Is(err, procmem.ErrGone)
	})
}

func TestSeesTracer(t *testing.T) {
	_, w := startBlocker(t)
	watch := newWatcher(t, w)
	gdb := startTracer(t, w.PID)
	l := waitClosely(t, watch, "a tracer", func(l Look) bool { return l.Traced })
	if l.Tracer != gdb {
		t.Errorf("tracer %d, want %d", l.Tracer, gdb)
	}
}

func waitClosely(t *testing.T, w *Watcher, what string, ok func(Look) bool) Look {
	t.Helper()
	var l Look
	eventually(t, what, func() bool {
		var err error
		if l, err = w.LookClosely(); err != nil {
			t.Fatal(err)
		}
		return ok(l)
	})
	return l
}

func TestDescribesWaitForChild(t *testing.T) {
	s, w := startBlocker(t)
	hang(t, s, "GET /sleep HTTP/1.1\r\nHost: x\r\n\r\n")
	l := waitLook(t, newWatcher(t, w), "wait4", func(l Look) bool { return SyscallName(l.Syscall) == "wait4" })
	if l.InEventWait || l.State != 'S' || l.SP == 0 || l.PC == 0 {
		t.Errorf("%+v", l)
	}
	var d Wait
	eventually(t, "the child's command line", func() bool {
		d = describe(t, w, l)
		return strings.Contains(d.Command, "sleep 5")
	})
	if want := fmt.Sprintf("wait4: child %d (%s)", d.Child, d.Command); d.Text != want || d.Child == 0 {
		t.Errorf("%+v", d)
	}
}

func TestDescribesSleep(t *testing.T) {
	s, w := startBlocker(t)
	hang(t, s, "GET /usleep HTTP/1.1\r\nHost: x\r\n\r\n")
	l := waitLook(t, newWatcher(t, w), "a sleep", func(l Look) bool { return strings.HasSuffix(SyscallName(l.Syscall), "nanosleep") })
	if d := describe(t, w, l); d.Sleep != 10*time.Millisecond || d.Text != d.Syscall+": sleeps for 10ms" {
		t.Errorf("%+v", d)
	}
}

func TestDescribesFile(t *testing.T) {
	s, w := startBlocker(t)
	fifo := filepath.Join(s.dir, "pipe")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	hang(t, s, "GET /fifo?path="+fifo+" HTTP/1.1\r\nHost: x\r\n\r\n")
	watch := newWatcher(t, w)
	l := waitLook(t, watch, "an open", func(l Look) bool { return strings.HasPrefix(SyscallName(l.Syscall), "open") })
	if d := describe(t, w, l); d.Path != fifo || d.Text != d.Syscall+": file "+fifo {
		t.Errorf("%+v", d)
	}
	writer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	l = waitLook(t, watch, "a read", func(l Look) bool { return SyscallName(l.Syscall) == "read" })
	if d := describe(t, w, l); d.Path != fifo || d.FD < 0 {
		t.Errorf("%+v", d)
	}
}

func TestDescribesSocket(t *testing.T) {
	s, w := startBlocker(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	addr := listener.Addr().(*net.TCPAddr)
	hang(t, s, "GET /connect?port="+strconv.Itoa(addr.Port)+" HTTP/1.1\r\nHost: x\r\n\r\n")
	l := waitLook(t, newWatcher(t, w), "a read", func(l Look) bool { return SyscallName(l.Syscall) == "read" })
	if d := describe(t, w, l); d.Peer != addr.String() || !strings.HasSuffix(d.Text, " to "+addr.String()) {
		t.Errorf("%+v, want peer %s", d, addr)
	}
}

// A worker with an epoll instance that sleeps in poll waits for something else
// than its next event.
func TestPollIsNoEventWaitBesideEpoll(t *testing.T) {
	s, w := startBlocker(t)
	hang(t, s, "GET /poll HTTP/1.1\r\nHost: x\r\n\r\n")
	l := waitLook(t, newWatcher(t, w), "a poll", func(l Look) bool { return strings.HasSuffix(SyscallName(l.Syscall), "poll") })
	if l.InEventWait {
		t.Errorf("%+v", l)
	}
	if !EventWait(Nginx, l.Syscall) {
		t.Error("poll is the event wait of an nginx without epoll")
	}
}

func TestAnotherEpollIsNoEventWait(t *testing.T) {
	s, w := startBlocker(t)
	watch := newWatcher(t, w)
	loop := waitLook(t, watch, "an idle worker", func(l Look) bool { return l.InEventWait })
	hang(t, s, "GET /epoll HTTP/1.1\r\nHost: x\r\n\r\n")
	other := func(l Look) bool { return epollWaits[l.Syscall] && l.Args[0] != loop.Args[0] }
	if l := waitLook(t, watch, "a wait for another epoll", other); l.InEventWait || !l.Detailed {
		t.Errorf("%+v", l)
	}
	// Who has not seen the loop's own one can't tell, and must not guess.
	if l := waitLook(t, newWatcher(t, w), "the same", other); !l.InEventWait {
		t.Errorf("%+v", l)
	}
}

func TestPollIsEventWaitWithoutEpoll(t *testing.T) {
	s, _ := startHAProxy(t, 1, "-de") // without epoll
	w := waitProxy(t, newFinder(t), s.pid, "a thread", threads(1)).Workers[0]
	l := waitLook(t, newWatcher(t, w), "an idle thread", func(l Look) bool { return l.InEventWait })
	if !strings.HasSuffix(SyscallName(l.Syscall), "poll") {
		t.Errorf("%+v is in %s", l, SyscallName(l.Syscall))
	}
}

func TestRefusesReusedPID(t *testing.T) {
	_, w := startBlocker(t)
	w.StartTime++
	if _, err := NewWatcher(w, NewCgroups()); !errors.Is(err, procmem.ErrGone) {
		t.Errorf("error %v, want that the process is gone", err)
	}
}
