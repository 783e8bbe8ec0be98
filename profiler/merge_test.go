package profiler

import (
	"strconv"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

// native makes machine frames; "vm:80" is one of the VM that ends at CFA 80,
// "cut:80" one before which frames were left out.
func native(names ...string) []nativeFrame {
	var out []nativeFrame
	for _, n := range names {
		f := nativeFrame{Frame: stack.Frame{Kind: stack.Native, Function: n}}
		if cfa, vm := strings.CutPrefix(n, "vm:"); vm {
			f.vm = true
			f.cfa, _ = strconv.ParseUint(cfa, 10, 64)
		}
		if cfa, cut := strings.CutPrefix(n, "cut:"); cut {
			f.leftOut = true
			f.cfa, _ = strconv.ParseUint(cfa, 10, 64)
		}
		out = append(out, f)
	}
	return out
}

func lua(cfa uint64, names ...string) segment {
	s := segment{cfa: cfa}
	for _, n := range names {
		s.frames = append(s.frames, stack.Frame{Kind: stack.Lua, Function: n})
	}
	return s
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
		name            string
		native          []nativeFrame
		segments        []segment
		work, truncated string
		want, wantCut   string
	}{
		{name: "plain", native: native("vm:80", "lua_resume", "main"), segments: []segment{lua(80, "gcd", "pick")},
			want: "gcd pick lua_resume main"},
		{name: "sort with comparator",
			native:   native("vm:80", "lua_call", "auxsort", "lj_cf_table_sort", "vm:300", "lua_resume", "main"),
			segments: []segment{lua(80, "less"), lua(300, "sort", "handler")},
			want:     "less lua_call auxsort lj_cf_table_sort sort handler lua_resume main"},
		{name: "coroutine in coroutine", native: native("vm:80", "vm:160", "vm:240", "main"),
			segments: []segment{lua(80, "inner"), lua(160, "wrap", "outer"), lua(240, "wrap", "start")},
			want:     "inner wrap outer wrap start main"},
		{name: "helper inside of the interpreter", native: native("vm:8", "vm:80", "main"), segments: []segment{lua(80, "f")},
			want: "f main"},
		{name: "protected C without Lua frame", native: native("vm:80", "lj_vm_cpcall", "vm:200", "main"),
			segments: []segment{lua(80, "f"), lua(200)}, want: "f lj_vm_cpcall main"},
		{name: "two VMs", native: native("vm:80", "x", "vm:160", "main"), segments: []segment{lua(160, "outer"), lua(80, "inner")},
			want: "inner x outer main"},
		{name: "gc on top", native: native("lj_gc_step", "vm:80", "main"), segments: []segment{lua(80, "f")}, work: "gc",
			want: "lj_gc_step [gc] f main"},
		{name: "cut below", native: native("vm:80", "lua_call"), segments: []segment{lua(80, "f"), lua(300, "g")},
			truncated: "window cut", want: "f lua_call g", wantCut: "window cut"},
		{name: "segment too many", native: native("vm:160", "main"), segments: []segment{lua(80, "f"), lua(160, "g")},
			want: "f g main", wantCut: "Lua frames without machine frame"},
		{name: "segment below all", native: native("vm:80", "main"), segments: []segment{lua(80, "f"), lua(160, "g")},
			want: "f main g", wantCut: "Lua frames below the machine stack"},
		{name: "segment too few", native: native("vm:80", "x", "vm:160", "main"), segments: []segment{lua(80, "f")},
			want: "f x [lua] main", wantCut: "Lua frames missing at a machine frame"},
		{name: "VM just entered", native: native("vm:80", "x", "vm:160", "main"), segments: []segment{lua(160, "f")}, want: "[lua] x f main"},
		{name: "VM without Lua", native: native("vm:80", "x", "main"), want: "[lua] x main"},
		{name: "frames left out", native: native("x", "x", "cut:500", "vm:600", "main"), segments: []segment{lua(300, "f"), lua(600, "g")},
			want: "x x [frames left out] f cut:500 g main"},
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
