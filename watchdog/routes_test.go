package watchdog

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/watchdog/classes"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/respond"
)

// A proxy with the library, and a page that computes for too long.
const pagesNginx = `
user root;
worker_processes 1;
load_module %[3]s/ndk_http_module.so;
load_module %[3]s/ngx_http_lua_module.so;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events {}
http {
  access_log off;
  lua_package_path "%[4]s/?.lua;;";
  lua_shared_dict spinguard 4m;
  init_by_lua_block {
    spinguard = require "resty.spinguard"
    spinguard.init({ dict = "spinguard", dir = "%[1]s/run" })
    spinguard.upstream("pages", { slow_start = 0 })
    assert(spinguard.update("pages", { "127.0.0.1:%[2]d" }))
  }
  init_worker_by_lua_block { spinguard.init_worker() }
  upstream pages { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("pages") } }
  server {
    listen 127.0.0.1:%[2]d;
    location /page/ { return 200 "page"; }
    location / {
      access_by_lua_block {
        spinguard.guard("pages")
        if ngx.var.uri:find("^/report") then
          local x = 0
          for i = 1, 2e7 do x = x + math.sin(i) end
        end
      }
      log_by_lua_block { spinguard.log() }
      proxy_pass http://pages/page/;
    }
  }
}
`

func startPages(t *testing.T) (base string, master int) {
	t.Helper()
	lua, err := filepath.Abs("../balancer/lua")
	if err != nil {
		t.Fatal(err)
	}
	return startNginx(t, pagesNginx, "/other", lua)
}

// status asks for a page and returns its status, 0 without an answer.
func status(url string) (int, http.Header) {
	r, err := http.Get(url)
	if err != nil {
		return 0, nil
	}
	_ = r.Body.Close()
	return r.StatusCode, r.Header
}

func budget(c *config.Config) {
	c.RequestBudget = config.Budget{CPU: 50 * time.Millisecond, Offences: 3, Within: time.Minute, Quarantine: 2 * time.Second}
}

// events returns the texts of the events of one kind.
func events(a *Agent, kind string) (list []string) {
	for _, e := range a.feed.Recent() {
		if e.Kind == kind {
			list = append(list, e.Text)
		}
	}
	return list
}

func TestARouteOverItsBudgetIsQuarantined(t *testing.T) {
	base, master := startPages(t)
	a, _ := startAgent(t, t.TempDir(), config.Enforce, budget, master)
	n := 0
	offend := func() int { // always the same class, never the same path
		n++
		code, header := status(fmt.Sprintf("%s/report/%d", base, n))
		if code == 503 && header.Get("Retry-After") == "" {
			t.Error("refused without Retry-After")
		}
		return code
	}
	waitFor(t, "the route is refused", func() bool { return offend() == 503 })
	if n <= 3 {
		t.Errorf("refused after %d requests, three may offend", n-1)
	}
	if code, _ := status(base + "/other"); code != 200 {
		t.Errorf("another route: status %d", code)
	}
	waitFor(t, "the quarantine is listed", func() bool { return len(a.Quarantines()) == 1 })
	if q := a.Quarantines()[0]; q.Route != "GET /report/*" || q.By != "agent" || !strings.Contains(q.Reason, "50ms of CPU") {
		t.Errorf("%+v", q)
	}
	if list := events(a, "quarantined"); len(list) != 1 || !strings.HasPrefix(list[0], "route GET /report/*: until ") {
		t.Errorf("events %q", list)
	}
	waitFor(t, "its time is over", func() bool { return offend() == 200 })
	if got := events(a, "quarantined"); len(got) != 1 {
		t.Errorf("quarantined again at once: %q", got)
	}
	if len(events(a, "confirmed")) != 0 {
		t.Error("a budget makes no incident")
	}
}

func TestAnOperatorLiftsTheQuarantineOfARoute(t *testing.T) {
	base, master := startPages(t)
	a, _ := startAgent(t, t.TempDir(), config.Enforce, func(c *config.Config) {
		budget(c)
		c.RequestBudget.Quarantine = time.Minute
	}, master)
	waitFor(t, "the route is refused", func() bool { code, _ := status(base + "/report"); return code == 503 })
	waitFor(t, "the quarantine is listed", func() bool { return len(a.Quarantines()) == 1 })
	if err := a.Lift(a.Quarantines()[0].ID, "we need it"); err != nil {
		t.Fatal(err)
	}
	// A class is told once in the time of its offences; do not wait for that.
	if err := a.ask(func() error { a.offences = classes.Offences{}; return nil }); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the agent keeps to that word", func() bool {
		status(base + "/report")
		return slices.ContainsFunc(events(a, "refused"), func(s string) bool { return strings.Contains(s, "a manual word wins") })
	})
	if len(a.Quarantines()) != 0 {
		t.Errorf("quarantined again: %+v", a.Quarantines())
	}
}

func TestBudgetsInObserveOnlySayWhatTheyWouldDo(t *testing.T) {
	base, master := startPages(t)
	a, _ := startAgent(t, t.TempDir(), config.Observe, budget, master)
	waitFor(t, "it would be refused", func() bool {
		if code, _ := status(base + "/report"); code != 200 {
			t.Fatalf("status %d", code)
		}
		return slices.Contains(events(a, "would_quarantine"),
			"route GET /report: mode is observe; 3 requests used over 50ms of CPU each within 1m0s")
	})
	if len(a.Quarantines()) != 0 {
		t.Errorf("quarantined: %+v", a.Quarantines())
	}
}

func TestQuarantinesOfRoutes(t *testing.T) {
	c := respond.Culprit{Proxy: "nginx", Upstream: "shop", Route: "GET /report"}
	entry := func(kind balancer.Kind, upstream, subject string) balancer.Entry {
		return balancer.Entry{Kind: kind, Upstream: upstream, Subject: subject}
	}
	entries := []balancer.Entry{entry(balancer.KindRoute, "shop", "GET /a"), entry(balancer.KindRoute, "", "GET /a"),
		entry(balancer.KindRoute, "cart", c.Route), entry(balancer.KindPeer, "shop", "10.0.0.1:80")}
	if routeRefused(entries, c) {
		t.Error("refused by another upstream's entry")
	}
	if n := refusedRoutes(entries, c.Route); n != 1 {
		t.Errorf("%d other routes are refused, want 1", n)
	}
	if !routeRefused(append(entries, entry(balancer.KindRoute, "", c.Route)), c) {
		t.Error("an entry for all upstreams was not seen")
	}
	if other := (respond.Culprit{Proxy: "nginx", Upstream: "shop", Version: "0"}); liftKey(c) == liftKey(other) {
		t.Error("to lift a route lifts a version")
	}
}

func TestAProxyWithoutALedgerRefusesNoRoute(t *testing.T) {
	base, master := startNginx(t, busyNginx, "/burn/0")
	a, _ := startAgent(t, t.TempDir(), config.Enforce, budget, master)
	waitFor(t, "it says why not", func() bool {
		status(base + "/burn/20000000")
		return slices.ContainsFunc(events(a, "refused"), func(s string) bool { return strings.Contains(s, "reads no ledger") })
	})
}
