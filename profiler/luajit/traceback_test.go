package luajit

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

// TestTraceback compares the walk with what Lua itself says of the same place.
func TestTraceback(t *testing.T) {
	script, err := filepath.Abs("testdata/traceback.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines(t) {
		for _, mode := range []string{"on", "off"} {
			t.Run(e.name+"/"+mode, func(t *testing.T) {
				p, said := start(t, e, script, mode)
				vm := findVMs(t, p)[0]
				want := tracebackLines(said)
				if strings.Count(want, "\n") < 6 {
					t.Fatalf("traceback of the script:\n%s", said)
				}
				for n := range 10 {
					pause(n)
					mem, regs := sample(t, vm, p)
					w, err := vm.Walk(mem, regs)
					if err != nil {
						t.Fatal(err)
					}
					if got := strings.Join(walkLines(w), "\n"); got != want {
						t.Fatalf("walk says\n%s\nLua says\n%s\n%s", got, want, text(w, regs))
					}
				}
			})
		}
	}
}

var tracebackLine = regexp.MustCompile(`^\t\.*\S*?([^/\s]+):(\d+): in (?:function|upvalue|local|method|field|metamethod|global)? ?(.*)$`)

// tracebackLines reduces Lua's traceback to "file:line name", and leaves out
// functions that it can't name and those in C.
func tracebackLines(said string) string {
	var lines []string
	for _, line := range strings.Split(said, "\n") {
		m := tracebackLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := strings.Trim(m[3], "'")
		if strings.HasPrefix(name, "<") {
			name = "?"
		}
		lines = append(lines, fmt.Sprintf("%s:%s %s", m[1], m[2], name))
	}
	return strings.Join(lines, "\n")
}

// unnamed by Lua: a function that C called.
const calledByC = "guarded"

func walkLines(w Walk) []string {
	var lines []string
	for _, segment := range w.Segments {
		for _, f := range segment {
			if f.Kind == stack.Builtin {
				continue
			}
			name := f.Function
			if name == calledByC {
				name = "?"
			}
			lines = append(lines, fmt.Sprintf("%s:%d %s", path.Base(f.File), f.Line, name))
		}
	}
	return lines
}
