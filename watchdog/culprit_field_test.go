package watchdog

import (
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/watchdog/config"
)

// One of Kong's locals is the table of the upstream.
func TestCulpritFromFieldsOfATable(t *testing.T) {
	tables := memory{
		7: {text("name", "shop"), number("updated_at", "1764467869"), ref("client", 8)},
		8: {text("id", "c1")},
	}
	s := stack.Stack{Frames: []stack.Frame{
		{Kind: stack.Lua, Function: "getPeer", File: "/kong/round_robin.lua", Values: []stack.Value{text("upstream", "x")}},
		{Kind: stack.Lua, Function: "execute", File: "/kong/init.lua", Values: []stack.Value{ref("upstream", 7), text("version", "3")}},
	}}
	for _, test := range []struct{ upstream, version, want string }{
		{"upstream.name", "upstream.updated_at", "shop 1764467869"},
		{"upstream.client.id", "version", "c1 3"},
		{"upstream", "version", ""},         // a table is no name
		{"upstream.none", "version", ""},    // no such field
		{"version.name", "version", ""},     // no table
		{"a.b.c.d.e.f.g.h", "version", ""},  // too deep
		{"upstream.name.x", "version", ""},  // a string has no fields
		{"upstream.client", "version", ""},  // a table again
		{"upstream.name", "nothing.at", ""}, // no such local
	} {
		upstream, version, ok := fromLocals(s, config.Culprit{Frame: "init.lua", Upstream: test.upstream, Version: test.version}, tables)
		if got := upstream + " " + version; ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s, %s: %q %v, want %q", test.upstream, test.version, got, ok, test.want)
		}
	}
}
