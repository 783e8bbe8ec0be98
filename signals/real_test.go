package signals

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A test that needs another process starts this very program as one that
// listens and says so.
func TestMain(m *testing.M) {
	if address := os.Getenv("SIGNALS_TEST_LISTEN"); address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(l.Addr())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if address := os.Getenv("SIGNALS_TEST_CONNECT"); address != "" {
		if _, err := net.Dial("tcp", address); err != nil {
			os.Exit(1)
		}
		fmt.Println("connected")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// listener starts a process that listens at the address and accepts nothing.
func listener(t *testing.T, address string) (cmd *exec.Cmd, at string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SIGNALS_TEST_LISTEN="+address)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := fmt.Fscanln(out, &at); err != nil || !strings.Contains(at, "127.0.0.1:") {
		t.Fatal(at, err)
	}
	return cmd, at
}

func TestTellsBackendsThatAreStartedAnew(t *testing.T) {
	c := New()
	me := []Worker{{Proxy: "me", Index: 1, PID: os.Getpid()}}
	collect := func() Report {
		r, err := c.Collect(time.Now(), me)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	told := func(r Report) string {
		return strings.Join(slices.DeleteFunc(kinds(r), func(s string) bool { return !strings.Contains(s, "backend") }), "; ")
	}
	first, address := listener(t, "127.0.0.1:0")
	// Another process of the same user has connections, which are none of ours.
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "SIGNALS_TEST_CONNECT="+address)
	hold, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Close(); _ = other.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if r := collect(); len(r.Backends) != 0 {
		t.Errorf("a backend of others: %v", r.Backends)
	}
	clear(c.others) // as if it were long ago
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if r := collect(); told(r) != "" || r.Backends[address] != 0 {
		t.Errorf("seen for the first time: %s", told(r))
	}
	_ = conn.Close()
	_ = first.Process.Kill()
	_ = first.Wait()
	want := fmt.Sprintf("restart: backend %s: nobody listens any more, signals.test (pid %d) has ended", address, first.Process.Pid)
	if r := collect(); told(r) != want || r.Suspected == "" {
		t.Errorf("ended: %q, want %q", told(r), want)
	}
	if r := collect(); told(r) != "" {
		t.Errorf("told twice: %s", told(r))
	}
	second, _ := listener(t, address)
	want = fmt.Sprintf("restart: backend %s is a new process: signals.test (pid %d), before it signals.test (pid %d)", address, second.Process.Pid, first.Process.Pid)
	if r := collect(); told(r) != want || r.Backends[address] != 1 {
		t.Errorf("started anew: %q %v, want %q", told(r), r.Backends, want)
	}
	if r := collect(); told(r) != "" || r.Backends[address] != 1 {
		t.Errorf("told twice: %s", told(r))
	}
}

const reuseport = `
worker_processes 2;
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 64; }
http {
  access_log off;
  server { listen 127.0.0.1:%[2]d reuseport backlog=4; return 200; }
}
`

// With reuseport each worker has a queue of its own, but all have all sockets
// open: their master opened them.
func TestNamesTheWorkerWhoseQueueIsFull(t *testing.T) {
	exe, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir, port := t.TempDir(), freePort(t)
	put(t, dir+"/nginx.conf", fmt.Sprintf(reuseport, dir, port))
	cmd := exec.Command(exe, "-p", dir, "-c", dir+"/nginx.conf")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var workers []Worker
	t.Cleanup(func() {
		for _, w := range workers {
			_ = syscall.Kill(w.PID, syscall.SIGCONT)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); len(workers) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nginx has no workers")
		}
		workers = waitingChildren(cmd.Process.Pid)
	}
	if err := syscall.Kill(workers[1].PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 24 {
		fill(t, port)
	}
	r, err := New().Collect(time.Now(), workers)
	for end := time.Now().Add(10 * time.Second); r.Queues[workers[0].PID] != 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r, err = New().Collect(time.Now(), workers) // the first has not accepted its own yet
	}
	text := strings.Join(kinds(r), "; ")
	if err != nil || r.Queues[workers[0].PID] != 0 || r.Queues[workers[1].PID] < fullQueue {
		t.Errorf("queues %v of workers %+v, the second is stopped; %v", r.Queues, workers, err)
	}
	if want := fmt.Sprintf("worker 2 (pid %d) does not accept", workers[1].PID); !strings.Contains(text, want) || strings.Contains(text, "worker 1") {
		t.Errorf("%q, want %q alone", text, want)
	}
}

// waitingChildren are the children of a process whose epoll waits for all that
// it is going to: an event of its own, its master, a listening socket.
func waitingChildren(pid int) (list []Worker) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for i, field := range strings.Fields(string(text)) {
		var child int
		_, _ = fmt.Sscan(field, &child)
		infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", child))
		for _, path := range infos {
			if text, _ := os.ReadFile(path); len(ParseEpoll(bytes.NewReader(text))) >= 3 {
				list = append(list, Worker{Proxy: "nginx", Index: i + 1, PID: child})
			}
		}
	}
	return list
}

// fill begins a connect and does not wait for it.
func fill(t *testing.T, port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil && err != unix.EINPROGRESS {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
