package grafana

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
)

// patience is for ever: what is waited for here takes seconds.
const patience = time.Minute

// night is a real nginx with the library, and a real agent in enforce beside
// it, in which all workers hang for a weight of "0" and are healed.
type night struct {
	proxy string // address of nginx
	agent string // address of the agent's page
	name  string // of the proxy, as the agent calls it
}

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

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// run starts a program that ends with the test; its output is shown if the
// test fails.
func run(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait() // killed: an error is what is wanted
		if data, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s: %s", program, data[max(0, len(data)-4000):])
		}
		_ = log.Close()
	})
	return c
}

// startNight starts proxy and agent; nothing is wrong yet.
func startNight(t *testing.T) *night {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("REQUIRE_BPF") != "" {
			t.Fatal("not root")
		}
		t.Skip("not root")
	}
	n := &night{proxy: freePort(t), agent: freePort(t)}
	dir, err := os.MkdirTemp("", "sg") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	nginx := run(t, need(t, "/usr/sbin/nginx"), "-g", "daemon off;", "-p", dir, "-c", n.configure(t, dir))
	config := fmt.Sprintf("mode: enforce\nmasters: [%d]\nstate_dir: %s/state\nrun_dir: %s/run\nlisten: %s\nrails: {quarantine_base: 5m}\n", nginx.Process.Pid, dir, dir, n.agent)
	if err := os.WriteFile(dir+"/agent.yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, binary(t, dir), "agent", "--config", dir+"/agent.yaml")
	n.traffic(t)
	return n
}

// binary is the program under test.
func binary(t *testing.T, dir string) string {
	t.Helper()
	if path := os.Getenv("SPINGUARD_BIN"); path != "" {
		return path
	}
	// dir/spinguard is the folder of nginx's library.
	if out, err := exec.Command("go", "build", "-o", dir+"/program", "../../cmd/spinguard").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir + "/program"
}

// configure writes the configuration of the drill gcd-nan, with the library's
// guard, whose numbers the balancer's dashboard shows.
func (n *night) configure(t *testing.T, dir string) string {
	t.Helper()
	lab, err := filepath.Abs("../../drill/scenarios/gcd-nan")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(lab + "/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(n.proxy)
	conf := strings.NewReplacer("{{.Run}}/lua", filepath.Dir(filepath.Dir(filepath.Dir(lab)))+"/balancer/lua", "{{.Run}}", dir, "{{.Case}}", lab,
		"{{.Port}}", port, "{{.Port1}}", peer(t), "{{.Port2}}", peer(t),
		`spinguard.update("shop"`, `spinguard.upstream("shop", {}) spinguard.update("shop"`,
		"location /shop/ {", `location /shop/ { access_by_lua_block { spinguard.guard("shop") } log_by_lua_block { spinguard.log() }`).Replace(string(text))
	if err := os.WriteFile(dir+"/nginx.conf", []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir + "/nginx.conf"
}

// peer starts a backend and returns its port.
func peer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

// traffic asks for pages until the test ends; a hang costs a client a second.
func (n *night) traffic(t *testing.T) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				if r, err := client.Get("http://" + n.proxy + "/shop/cart/17"); err == nil {
					_ = r.Body.Close()
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); all.Wait() })
}

// publish sends peers to the balancer and returns its status.
func (n *night) publish(t *testing.T, body string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+n.proxy+"/admin/upstreams/shop", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}

// fall publishes the weight that hangs every worker, and waits until the agent
// has healed the proxy.
func (n *night) fall(t *testing.T) {
	t.Helper()
	if code := n.publish(t, "[]"); code != 422 {
		t.Errorf("an empty list: %d, want 422", code)
	}
	bad := fmt.Sprintf(`[{"host":"127.0.0.1","port":%s,"weight":5},{"host":"127.0.0.1","port":%s,"weight":"0"}]`, peer(t), peer(t))
	if code := n.publish(t, bad); code != 200 {
		t.Fatalf("the bad weight: %d", code)
	}
	eventually(t, "the incident is over", func() bool {
		list := n.incidents()
		if len(list) == 0 {
			return false
		}
		n.name = list[0].Proxy
		return list[0].Outcome == incident.Recovered
	})
}

// incidents are those of the agent so far; on a busy machine the two workers
// may make one each.
func (n *night) incidents() (list []incident.Summary) {
	if json.Unmarshal(get("http://"+n.agent+"/api/incidents"), &list) != nil {
		return nil
	}
	return list
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}
