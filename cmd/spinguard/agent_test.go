package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spinguard/spinguard/web/client"
)

// patience is for ever: what is waited for here takes a second at most.
const patience = 30 * time.Second

// binary builds the program once, unless SPINGUARD_BIN names one.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("SPINGUARD_BIN"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "spinguard-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "spinguard")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v: %s", err, out)
	}
	return path, nil
})

// need returns where a program is. Without it the test is skipped, or fails
// where nothing may be skipped.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err != nil && os.Getenv("REQUIRE_BPF") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return path
}

// agentProcess is a running agent with folders of its own.
type agentProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	config string
	run    string
	client *client.Client
	log    *syncBuffer
}

// startAgent runs the program as an agent; wrap is put in front of it.
func startAgent(t *testing.T, settings string, wrap ...string) *agentProcess {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("REQUIRE_BPF") != "" {
			t.Fatal("not root")
		}
		t.Skip("not root")
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sg") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &agentProcess{t: t, config: filepath.Join(dir, "agent.yaml"), run: filepath.Join(dir, "run"), log: &syncBuffer{}}
	a.configure(settings)
	args := append(wrap, bin, "agent", "--config", a.config)
	a.cmd = exec.Command(args[0], args[1:]...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); _ = a.cmd.Wait() })
	a.client = client.New(filepath.Join(a.run, socketName))
	t.Cleanup(a.client.Close)
	a.eventually("the agent answers", func() bool {
		_, err := a.client.Status(context.Background())
		return err == nil
	})
	return a
}

func (a *agentProcess) configure(settings string) {
	listen := "listen: \"\"\n"
	if strings.Contains(settings, "listen:") {
		listen = ""
	}
	text := fmt.Sprintf("state_dir: %s\nrun_dir: %s\n%s%s", filepath.Join(filepath.Dir(a.config), "state"), a.run, listen, settings)
	if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agentProcess) eventually(what string, ok func() bool) {
	a.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("not so: %s; the agent's log:\n%s", what, a.log.String())
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// startNginx runs a private nginx with a handler that sleeps in a shell, and
// returns its address and the pid of its master.
func startNginx(t *testing.T) (address string, master int) {
	t.Helper()
	for _, need := range []string{"/usr/sbin/nginx", "/usr/lib/nginx/modules/ngx_http_lua_module.so"} {
		if _, err := os.Stat(need); err != nil {
			if os.Getenv("REQUIRE_BPF") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	dir := t.TempDir()
	conf := fmt.Sprintf(`load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off; user www-data; worker_processes 1; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 64; }
http {
  access_log off;
  server {
    listen %[2]s;
    location / { return 200 "ok"; }
    location /sleep { content_by_lua_block { os.execute("sleep 20") } }
    location /loop { content_by_lua_block {
      local function pick(name, version) local n = 0; while name do n = n + 1 end; return n, version end
      ngx.say(pick("shop", "7"))
    } }
  }
}`, dir, address)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/sbin/nginx", "-p", dir, "-c", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	return address, cmd.Process.Pid
}

func TestAgentWithoutBPFSaysSoAndStillSeesBlockedWorkers(t *testing.T) {
	setpriv := need(t, "setpriv")
	address, master := startNginx(t)
	a := startAgent(t, fmt.Sprintf("masters: [%d]\n", master), setpriv, "--bounding-set=-bpf,-perfmon,-sys_admin")
	status, err := a.client.Status(context.Background())
	if err != nil || !strings.Contains(status.Sampler, "CAP_BPF") {
		t.Fatalf("sampler %q, %v; want the missing capability", status.Sampler, err)
	}
	a.eventually("the worker is seen", func() bool {
		list, err := a.client.Workers(context.Background())
		return err == nil && len(list) == 1 && list[0].Verdict == "healthy"
	})
	quick := http.Client{Timeout: 300 * time.Millisecond}
	_, _ = quick.Get("http://" + address + "/sleep") // its answer is not waited for
	a.eventually("the worker is blocked", func() bool {
		list, err := a.client.Workers(context.Background())
		return err == nil && len(list) == 1 && list[0].Verdict == "blocked" && strings.Contains(list[0].Request, "GET /sleep")
	})
}

func TestAgentReloadsOnHangup(t *testing.T) {
	a := startAgent(t, "mode: observe\n")
	mode := func() string {
		s, err := a.client.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return s.Mode
	}
	a.configure("mode: enforce\nsampling: {rate: 99}\n")
	_ = a.cmd.Process.Signal(syscall.SIGHUP)
	a.eventually("the mode is enforce", func() bool { return mode() == "enforce" })
	a.eventually("the key that needs a restart is named", func() bool { return strings.Contains(a.log.String(), "sampling.rate") })
	a.configure("mode: nonsense\n")
	_ = a.cmd.Process.Signal(syscall.SIGHUP)
	a.eventually("the bad configuration is said", func() bool { return strings.Contains(a.log.String(), "nonsense") })
	if got := mode(); got != "enforce" {
		t.Errorf("mode %s after a bad configuration, want enforce", got)
	}
}

func TestASecondAgentIsRefused(t *testing.T) {
	a := startAgent(t, "")
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "agent", "--config", a.config).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "locked") {
		t.Errorf("a second agent on the same folders: %v, %s", err, out)
	}
}

func TestAgentEndsOnTerm(t *testing.T) {
	a := startAgent(t, "")
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("on SIGTERM: %v; log:\n%s", err, a.log.String())
	}
}
