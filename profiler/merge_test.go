package profiler

import (
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

func native(names ...string) []nativeFrame {
	var out []nativeFrame
	for _, n := range names {
		name, vm := strings.CutPrefix(n, "vm:")
		out = append(out, nativeFrame{Frame: stack.Frame{Kind: stack.Native, Function: name}, vm: vm})
	}
	return out
}

func segment(names ...string) []stack.Frame {
	var out []stack.Frame
	for _, n := range names {
		out = append(out, stack.Frame{Kind: stack.Lua, Function: n})
	}
	return out
}

func names(s stack.Stack) string {
	var out []string
	for _, f := range s.Frames {
		out = append(out, f.Function)
	}
	return strings.Join(out, " ")
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name      string
		native    []nativeFrame
		segments  [][]stack.Frame
		work      string
		truncated string
		want      string
		wantCut   string
	}{
		{name: "plain", native: native("vm:lj_BC_ADD", "lua_resume", "main"), segments: [][]stack.Frame{segment("gcd", "pick")},
			want: "gcd pick lua_resume main"},
		{name: "sort with comparator",
			native:   native("vm:a", "lua_call", "auxsort", "lj_cf_table_sort", "vm:b", "lua_resume", "main"),
			segments: [][]stack.Frame{segment("less"), segment("sort", "handler")},
			want:     "less lua_call auxsort lj_cf_table_sort sort handler lua_resume main"},
		{name: "coroutine in coroutine", native: native("vm:a", "vm:b", "vm:c", "main"),
			segments: [][]stack.Frame{segment("inner"), segment("wrap", "outer"), segment("wrap", "start")},
			want:     "inner wrap outer wrap start main"},
		{name: "gc on top", native: native("lj_gc_step", "vm:a", "main"), segments: [][]stack.Frame{segment("f")}, work: "gc",
			want: "lj_gc_step [gc] f main"},
		{name: "cut below", native: native("vm:a", "lua_call"), segments: [][]stack.Frame{segment("f"), segment("g")},
			truncated: "window cut at 16384 bytes", want: "f lua_call g", wantCut: "window cut at 16384 bytes"},
		{name: "segment too many", native: native("vm:a", "main"), segments: [][]stack.Frame{segment("f"), segment("g")},
			want: "f main g", wantCut: "1 Lua segments without machine frame"},
		{name: "segment too few", native: native("vm:a", "x", "vm:b", "main"), segments: [][]stack.Frame{segment("f")},
			want: "f x [lua] main"},
		{name: "no Lua", native: native("epoll_wait", "main"), work: "c", want: "epoll_wait main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := merge(c.native, c.segments, c.work, c.truncated)
			if names(got) != c.want || got.Truncated != c.wantCut {
				t.Errorf("got %q (%q), want %q (%q)", names(got), got.Truncated, c.want, c.wantCut)
			}
		})
	}
}
