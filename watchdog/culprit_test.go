package watchdog

import (
	"testing"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/respond"
)

func TestCulpritFromLocals(t *testing.T) {
	rule := config.Culprit{Frame: "wrr.lua", Upstream: "name", Version: "version"}
	lua := func(file string, values ...stack.Value) stack.Frame {
		return stack.Frame{Kind: stack.Lua, Function: "f", File: file, Values: values}
	}
	remark := func(v stack.Value) stack.Value { v.Text += " when the trace began"; return v }
	tests := []struct {
		name              string
		frames            []stack.Frame
		upstream, version string
		ok                bool
	}{
		{"innermost that has both", []stack.Frame{lua("wrr.lua", text("name", "a")), lua("/srv/wrr.lua", text("name", "shop"), number("version", "2"))}, "shop", "2", true},
		{"version as a string", []stack.Frame{lua("wrr.lua", text("name", "shop"), text("version", "2a"))}, "shop", "2a", true},
		{"with remarks", []stack.Frame{lua("wrr.lua", remark(text("name", "shop")), remark(number("version", "2")))}, "shop", "2", true},
		{"another chunk", []stack.Frame{lua("other.lua", text("name", "shop"), number("version", "2"))}, "", "", false},
		{"a table is no name", []stack.Frame{lua("wrr.lua", ref("name", 1), number("version", "2"))}, "", "", false},
		{"an empty name", []stack.Frame{lua("wrr.lua", text("name", ""), number("version", "2"))}, "", "", false},
		{"a native frame", []stack.Frame{{Kind: stack.Native, File: "wrr.lua", Values: []stack.Value{text("name", "shop"), number("version", "2")}}}, "", "", false},
	}
	for _, test := range tests {
		upstream, version, ok := fromLocals(stack.Stack{Frames: test.frames}, rule, memory{})
		if upstream != test.upstream || version != test.version || ok != test.ok {
			t.Errorf("%s: %q %q %v, want %q %q %v", test.name, upstream, version, ok, test.upstream, test.version, test.ok)
		}
	}
}

func TestAVersionIsCondemnedByTheOpenIncidentOfItsProxy(t *testing.T) {
	one, other := &instance{Proxy: proxy.Proxy{Master: 1}}, &instance{Proxy: proxy.Proxy{Master: 2}}
	a := &Agent{episodes: []*episode{{in: other}, {in: one, culprit: respond.Culprit{Upstream: "shop", Version: "7"}}}}
	for _, c := range []struct {
		name  string
		in    *instance
		crumb balancer.Crumb
		want  bool
	}{
		{"the same version", one, balancer.Crumb{Active: true, Upstream: "shop", Version: 7}, true},
		{"a picker that is done", one, balancer.Crumb{Upstream: "shop", Version: 7}, false},
		{"another version", one, balancer.Crumb{Active: true, Upstream: "shop", Version: 8}, false},
		{"another upstream", one, balancer.Crumb{Active: true, Upstream: "cart", Version: 7}, false},
		{"another proxy", other, balancer.Crumb{Active: true, Upstream: "shop", Version: 7}, false},
	} {
		if a.condemned(&worker{in: c.in, crumb: c.crumb}) != c.want {
			t.Errorf("%s: want %v", c.name, c.want)
		}
	}
}
