package profiler

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/stack"
)

// phases are the places in nginx's work where Lua may run.
var phases = []struct{ name, http, server string }{
	{"init_worker_by_lua", `init_worker_by_lua_block { if ngx.worker.id() == 0 then cases.loop() end }`, ""},
	{"set_by_lua", "", `location /go { set_by_lua_block $x { cases.loop() } return 200; }`},
	{"rewrite_by_lua", "", `location /go { rewrite_by_lua_block { cases.loop() } content_by_lua_block { ngx.say("x") } }`},
	{"access_by_lua", "", `location /go { access_by_lua_block { cases.loop() } content_by_lua_block { ngx.say("x") } }`},
	{"content_by_lua", "", `location /go { content_by_lua_block { cases.loop() } }`},
	{"balancer_by_lua", `upstream backend { server 0.0.0.1; balancer_by_lua_block { cases.loop() } }`, `location /go { proxy_pass http://backend; }`},
	{"header_filter_by_lua", "", `location /go { header_filter_by_lua_block { cases.loop() } return 200 "x"; }`},
	{"body_filter_by_lua", "", `location /go { body_filter_by_lua_block { cases.loop() } return 200 "x"; }`},
	{"log_by_lua", "", `location /go { log_by_lua_block { cases.loop() } return 200 "x"; }`},
	{"timer", "", `location /go { content_by_lua_block { ngx.timer.at(0, function() cases.loop() end) ngx.say("x") } }`},
}

// TestEveryPhase loops in each phase: the looping line is found, and the block
// of the configuration that called it.
func TestEveryPhase(t *testing.T) {
	for _, c := range phases {
		t.Run(c.name, func(t *testing.T) {
			n := startNginx(t, 2, "", luaCases+c.http, c.server)
			if c.server != "" {
				n.Trigger(t, "/go")
			}
			pid := busiest(t, n.Workers)
			s, p := openSampler(t), openProcess(t, pid)
			watch(t, s, p)
			block := c.name
			if c.name == "timer" {
				block = "content_by_lua" // which made the function
			}
			good, bad := 0, ""
			got := take(t, s, 60, aMinute, func(x bpf.Sample) {
				r := p.Understand(x)
				at := place(t, r.Stack, 0, "cases.lua:LOOP")
				called := at >= 0 && slices.ContainsFunc(r.Stack.Frames[at:], func(f stack.Frame) bool { return strings.Contains(f.Place(), block) })
				if r.Stack.Truncated == "" && called {
					good++
				} else {
					bad = r.Stack.Truncated + " " + lines(r.Stack)
				}
			})
			if good < got-1 || got < 60 {
				t.Errorf("%d of %d stacks show the loop and the block: %s", good, got, bad)
			}
		})
	}
}

// busiest waits until one of the processes loops.
func busiest(t *testing.T, pids []int) int {
	t.Helper()
	for end := time.Now().Add(aMinute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, pid := range pids {
			if usedCPU(t, pid) > 150*time.Millisecond {
				return pid
			}
		}
	}
	t.Fatal("no worker loops")
	return 0
}
