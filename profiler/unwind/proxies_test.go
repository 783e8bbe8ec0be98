package unwind

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve starts a proxy in the foreground and waits until it listens.
func serve(t *testing.T, cmd *exec.Cmd, port int) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its workers, stuck or not
		_ = cmd.Wait()
	})
	for range 500 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not listen on port %d", cmd.Path, port)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// workerOf waits for the first child of a master.
func workerOf(t *testing.T, pid int) int {
	t.Helper()
	for range 500 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			t.Fatal(err)
		}
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			child, err := strconv.Atoi(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			return child
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the master has no worker")
	return 0
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNginxAsleep walks a stripped worker that waits for events, from stack
// pointer and program counter.
func TestNginxAsleep(t *testing.T) {
	nginx := need(t, "nginx")
	port, dir := freePort(t), t.TempDir()
	conf := write(t, "nginx.conf", fmt.Sprintf(`daemon off; error_log stderr crit; pid %s/pid; worker_processes 1;
events {} http { access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s;
uwsgi_temp_path %[1]s; scgi_temp_path %[1]s; server { listen 127.0.0.1:%d; } }`, dir, port))
	cmd := exec.Command(nginx, "-c", conf, "-e", "stderr")
	serve(t, cmd, port)
	x := observe(t, workerOf(t, cmd.Process.Pid))
	regs := x.sleeping()
	frames, truncated := x.unwind.Unwind(regs, x.process, nil)
	names := x.names(frames)
	if truncated != "" || names[0] != "epoll_wait" || names[len(names)-1] != "_start" {
		t.Fatalf("%v %q", names, truncated)
	}
	for _, want := range []string{"ngx_process_events_and_timers", "ngx_spawn_process", "ngx_master_process_cycle", "__libc_start_main"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}

// TestHAProxyAsleep does the same for each thread of HAProxy.
func TestHAProxyAsleep(t *testing.T) {
	haproxy := need(t, "haproxy")
	port := freePort(t)
	conf := write(t, "haproxy.cfg", fmt.Sprintf("global\n  nbthread 2\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n"+
		"  timeout server 1s\nfrontend f\n  bind 127.0.0.1:%d\n", port))
	cmd := exec.Command(haproxy, "-db", "-f", conf)
	serve(t, cmd, port)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	x := observe(t, cmd.Process.Pid)
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		x.pid = tid
		var names []string
		var truncated string
		for range 100 { // threads wait for each other before their first turn
			var frames []Frame
			frames, truncated = x.unwind.Unwind(x.sleeping(), x.process, nil)
			if names = x.names(frames); names[0] == "epoll_wait" {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Log(names)
		if truncated != "" || len(names) < 4 || names[0] != "epoll_wait" || !slices.Contains(names, "run_poll_loop") {
			t.Errorf("thread %d: %v %q", tid, names, truncated)
		}
	}
}
