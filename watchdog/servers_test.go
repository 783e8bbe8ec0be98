package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/proxy/haproxyctl"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web/api"
)

// The pattern backtracks for minutes inside of one C function, which HAProxy
// can't interrupt.
const slowAnswer = `
core.register_action("slow", {"http-res"}, function(txn) string.find(string.rep("a", 3000), ".-.-.-b") end)
`

const carts = `
global
  nbthread 2
  lua-load %[1]s/slow.lua
  stats socket %[1]s/admin.sock level %[4]s
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend shop
  bind 127.0.0.1:%[2]d
  default_backend carts
backend carts
  http-request set-var(txn.path) path
  http-response lua.slow if { var(txn.path) -m str /poison }
  server first 127.0.0.1:%[3]d
  server second 127.0.0.1:%[3]d backup
listen answers
  bind 127.0.0.1:%[3]d
  http-request return status 200 content-type text/plain string "pong"
`

type haproxyRun struct {
	t    *testing.T
	dir  string
	port int
	pid  int
	cmd  *exec.Cmd
	done chan struct{}
}

func startHAProxy(t *testing.T, level string) *haproxyRun {
	t.Helper()
	needBPF(t)
	h := &haproxyRun{t: t, dir: t.TempDir(), port: freePort(t)}
	write(t, h.dir+"/slow.lua", slowAnswer)
	write(t, h.dir+"/h.cfg", fmt.Sprintf(carts, h.dir, h.port, freePort(t), level))
	h.launch()
	return h
}

func (h *haproxyRun) launch() {
	h.t.Helper()
	h.cmd, h.done = exec.Command("haproxy", "-db", "-f", h.dir+"/h.cfg"), make(chan struct{})
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	cmd, done := h.cmd, h.done
	go func() { _ = cmd.Wait(); close(done) }()
	h.pid = cmd.Process.Pid
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	waitFor(h.t, "HAProxy serves", func() bool {
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", h.port))
		if err == nil {
			_ = r.Body.Close()
		}
		return err == nil && r.StatusCode == 200
	})
}

func (h *haproxyRun) poison() {
	h.t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, "GET /poison HTTP/1.1\r\nHost: x\r\n\r\n")
}

func (h *haproxyRun) ended() {
	h.t.Helper()
	waitFor(h.t, "HAProxy's own watchdog ends it", func() bool {
		select {
		case <-h.done:
			return true
		default:
			return false
		}
	})
}

// held says whether HAProxy itself shows the first server in maintenance.
func (h *haproxyRun) held() bool {
	c, err := haproxyctl.Dial(h.t.Context(), "unix:"+h.dir+"/admin.sock")
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	list, err := c.Servers("carts")
	return err == nil && len(list) == 2 && list[0].Maintenance() && !list[1].Maintenance()
}

func needBPF(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("haproxy")
	if err == nil && os.Getuid() != 0 {
		err = os.ErrPermission
	}
	if err == nil {
		_, err = os.Stat("/sys/kernel/btf/vmlinux")
	}
	if err != nil && os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within a minute: %s", what)
}

// startAgent runs an agent that sees all proxies whose master passes.
func startAgent(t *testing.T, state string, mode config.Mode, change func(*config.Config), masters ...int) (*Agent, func()) {
	t.Helper()
	cfg := config.Default()
	cfg.Mode, cfg.StateDir, cfg.RunDir, cfg.Listen, cfg.Masters = mode, state, state, "", masters
	if change != nil {
		change(&cfg)
	}
	log := zap.NewNop()
	if testing.Verbose() {
		log = zaptest.NewLogger(t)
	}
	a, err := New(cfg, "test", log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
			a.Close()
		}
	}
	t.Cleanup(stop)
	waitFor(t, "the agent sees workers", func() bool { return len(masters) == 0 || len(a.Workers()) > 0 })
	return a, stop
}

func TestTakesAServerOutOfHAProxy(t *testing.T) {
	h := startHAProxy(t, "admin")
	state := t.TempDir()
	a, stop := startAgent(t, state, config.Enforce, nil, h.pid)
	h.poison()
	waitFor(t, "the server is held", h.held)
	select {
	case <-h.done:
		t.Fatal("HAProxy's own watchdog was faster")
	default:
	}
	waitFor(t, "the quarantine is listed", func() bool { return len(a.Quarantines()) == 1 })
	q := a.Quarantines()[0]
	if q.Upstream != "carts" || q.Server != "first" || !strings.Contains(q.Reason, "stuck for") {
		t.Errorf("%+v", q)
	}
	waitFor(t, "and on disk", func() bool { return onlyIncident(t, a).Timeline.Quarantined != nil })
	inc := onlyIncident(t, a)
	if inc.Verdict != "runaway" || inc.WorkersEvicted != 0 || inc.Timeline.Quarantined == nil || !strings.Contains(strings.Join(inc.Evidence.Frames, " "), "(slow.lua:2)") {
		t.Errorf("incident %s, evicted %d, timeline %+v, frames %q", inc.Verdict, inc.WorkersEvicted, inc.Timeline, inc.Evidence.Frames)
	}
	h.ended() // its own watchdog ends it
	stop()

	// Another agent, another process: the hold is in force in both.
	h.launch()
	b, _ := startAgent(t, state, config.Enforce, nil, h.pid)
	waitFor(t, "the server is held in the new process", h.held)
	waitFor(t, "and listed", func() bool { return len(b.Quarantines()) == 1 })
	if err := b.Lift(b.Quarantines()[0].ID, "repaired"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server is back", func() bool { return !h.held() && len(b.holdsNow(t)) == 0 })
}

func (a *Agent) holdsNow(t *testing.T) (list []*serverHold) {
	t.Helper()
	if err := a.ask(func() error { list = a.holds; return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

func onlyIncident(t *testing.T, a *Agent) *incident.Incident {
	t.Helper()
	list, err := a.store.List(incident.Filter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d incidents, %v; want 1", len(list), err)
	}
	inc, err := a.store.Load(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return inc
}

func TestPutsAServerBackWhenItsTimeIsOver(t *testing.T) {
	h := startHAProxy(t, "admin")
	c, err := haproxyctl.Dial(t.Context(), "unix:"+h.dir+"/admin.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetState("carts", "first", "maint"); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	name := proxyNameOf(t, h.pid, state)
	write(t, filepath.Join(state, holdsFile), fmt.Sprintf(`[{"id": "h-1", "proxy": %q, "sockets": ["unix:%s/admin.sock"], "backend": "carts", "server": "first",
		"until": "2020-01-01T00:00:00Z", "pid": %d}]`, name, h.dir, h.pid))
	a, _ := startAgent(t, state, config.Observe, nil, h.pid)
	waitFor(t, "the server is back", func() bool { return !h.held() && len(a.holdsNow(t)) == 0 })
}

// Whatever the way, HAProxy itself shows the server out, and then as it was.
func TestWaysToTakeAServerOut(t *testing.T) {
	h := startHAProxy(t, "admin")
	c, err := haproxyctl.Dial(t.Context(), "unix:"+h.dir+"/admin.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	first := func() haproxyctl.Server {
		list, err := c.Servers("carts")
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	if err := c.SetWeight(first(), 7); err != nil {
		t.Fatal(err)
	}
	before := first()
	addresses := []string{"unix:" + h.dir + "/admin.sock"}
	for _, how := range []config.Quarantine{"", config.Maint, config.Drain, config.Weight} {
		hold := serverHold{Backend: "carts", Server: "first", How: how}
		if hold.Weight, err = takeOut(addresses, hold); err != nil || !out(first(), how) || hold.Weight != 7 {
			t.Errorf("%q: %+v, %v", how, first(), err)
		}
		if _, err := takeOut(addresses, hold); !errors.Is(err, errNotOurs) {
			t.Errorf("%q twice: %v", how, err)
		}
		for range 2 { // what is back is left alone
			if err := putBack(addresses, hold); err != nil || first().Admin != before.Admin || first().Weight != 7 {
				t.Errorf("%q back: %+v, before %+v, %v", how, first(), before, err)
			}
		}
	}
}

func proxyNameOf(t *testing.T, pid int, state string) string {
	t.Helper()
	a, stop := startAgent(t, state, config.Observe, nil, pid)
	defer stop()
	return a.Status().Proxies[0].Name
}

func TestSaysWhyNoServerIsTakenOut(t *testing.T) {
	h := startHAProxy(t, "operator")
	a, _ := startAgent(t, t.TempDir(), config.Enforce, nil, h.pid)
	h.poison()
	h.ended()
	waitFor(t, "the incident has ended", func() bool {
		list, err := a.store.List(incident.Filter{})
		return err == nil && len(list) == 1 && list[0].Ended != nil
	})
	text := fmt.Sprint(onlyIncident(t, a).Events)
	if !strings.Contains(text, "not of level admin") || len(a.Quarantines()) != 0 {
		t.Errorf("%d quarantines, events %s", len(a.Quarantines()), text)
	}
}

func TestBadHoldsFile(t *testing.T) {
	for _, text := range []string{"", "{", `[{"id": 1}]`, "nonsense"} {
		if _, err := parseHolds([]byte(text)); err == nil || !strings.Contains(err.Error(), holdsFile) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if list, err := parseHolds([]byte(`[null, {}, {"id":"h","proxy":"p","backend":"b","server":"s"}]`)); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}

func TestHoldsAServerByHand(t *testing.T) {
	h := startHAProxy(t, "admin")
	a, _ := startAgent(t, t.TempDir(), config.Observe, nil, h.pid)
	r := api.QuarantineRequest{Upstream: "carts", Server: "first", Seconds: 2, Reason: "it makes threads hang"}
	q, err := a.Add(r)
	if err != nil || q.Server != "first" || q.By != "operator" || !h.held() {
		t.Fatalf("%+v, %v, held %v", q, err, h.held())
	}
	if _, err := a.Add(r); err == nil || !strings.Contains(err.Error(), errNotOurs.Error()) {
		t.Errorf("twice: %v", err)
	}
	r.Server = "third"
	if _, err := a.Add(r); err == nil || !strings.Contains(err.Error(), "no such server") {
		t.Errorf("a server that is not there: %v", err)
	}
	waitFor(t, "the server is back", func() bool { return !h.held() && len(a.holdsNow(t)) == 0 })
}
