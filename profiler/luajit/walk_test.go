package luajit

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

// liveCase is one script of testdata that never ends.
type liveCase struct {
	script   string
	modes    string   // "on off" for the JIT compiler
	lua      []string // functions in Lua, leaf first
	builtins []string // that must be seen in between, in every sample
	values   string   // name=text of the leaf in every sample
	segments int
	loose    int // samples that may be wrong: code that is thrown away while it is read
}

var liveCases = []liveCase{
	{script: "gcd.lua", lua: []string{"gcd", "spin", "main chunk"}, values: "a=nan b=nan"},
	{script: "while.lua", lua: []string{"divisor", "schedule", "main chunk"}, values: "x=nan y=nan"},
	{script: "find.lua", lua: []string{"match", "main chunk"}, builtins: []string{"string.find"}},
	{script: "floor.lua", lua: []string{"grind", "main chunk"}, values: "n=5"},
	{script: "sort.lua", lua: []string{"less", "order", "main chunk"}, builtins: []string{"table.sort"}, segments: 2},
	{script: "handler.lua", lua: []string{"handler", "broken", "guard", "main chunk"},
		builtins: []string{"xpcall", "pcall"}, segments: 2},
	{script: "coroutine.lua", lua: []string{"inner", "function <coroutine.lua:9>", "outer", "function <coroutine.lua:15>", "main chunk"},
		builtins: []string{"coroutine.resume", "wrapped"}, values: `tag="deep"`, segments: 3},
	{script: "finaliser.lua", lua: []string{"finalise", "allocate", "main chunk"}, segments: 2},
	{script: "deep.lua", lua: append(slices.Repeat([]string{"sink"}, 101), "main chunk"), values: "depth=0"},
	{script: "hook.lua", modes: "off", lua: []string{"hooked", "work", "main chunk"}, segments: 2},
	{script: "meta.lua", lua: []string{"__index", "__add", "total", "main chunk"}, values: `key="length"`},
	{script: "vararg.lua", lua: []string{"last", "pass", "main chunk"}, values: `first="one"`},
	{script: "inline.lua", lua: []string{"step", "twice", "turn", "main chunk"}},
	{script: "branch.lua", lua: []string{"pick", "main chunk"}, values: "peers=table(3)"},
	{script: "callback.lua", modes: "off", lua: []string{"compare", "order", "main chunk"}, segments: 2},
	{script: "ccall.lua", lua: []string{"poll", "main chunk"}, values: "us=2000"},
	{script: "math.lua", lua: []string{"grow", "outer", "main chunk"}, values: "x=5 p=0.999"},
	{script: "concat.lua", lua: []string{"build", "main chunk"}},
	{script: "compile.lua", modes: "on", lua: []string{"add", "churn", "main chunk"}, loose: 5},
	{script: "garbage.lua", lua: []string{"litter", "main chunk"}, values: "n=5000 keep=table(5000)"},
	{script: "chunk.lua", lua: []string{"main chunk", "main chunk"}, values: "n="},
}

func TestWalkLive(t *testing.T) {
	for _, e := range engines(t) {
		for _, c := range liveCases {
			if c.modes == "" {
				c.modes = "on off"
			}
			for _, mode := range strings.Fields(c.modes) {
				t.Run(e.name+"/"+c.script+"/"+mode, func(t *testing.T) { c.run(t, e, mode) })
			}
		}
	}
}

func (c liveCase) run(t *testing.T, e engine, mode string) {
	script, err := filepath.Abs("testdata/" + c.script)
	if err != nil {
		t.Fatal(err)
	}
	lines := marked(t, script)
	p, _ := start(t, e, script, mode)
	vm := findVMs(t, p)[0]
	debugLo = vm.lo
	pause(10) // the compiler gets its loop
	for n := range 25 {
		pause(n)
		mem, regs := sample(t, vm, p)
		w, err := vm.Walk(mem, regs)
		if err != nil {
			t.Fatalf("sample %d: %v", n, err)
		}
		if problem := c.check(w, lines); problem != "" {
			if c.loose--; c.loose < 0 {
				t.Fatalf("sample %d: %s\n%s", n, problem, text(w, regs))
			}
		}
	}
}

// check compares one walk with what the case says.
func (c liveCase) check(w Walk, lines map[string][]int) string {
	var names, builtins []string
	var leaf *stack.Frame
	for _, segment := range w.Segments {
		for i, f := range segment {
			if f.Kind == stack.Builtin {
				builtins = append(builtins, f.Function)
				continue
			}
			names = append(names, f.Function)
			want := append(lines["CALL"], lines["HOT"]...)
			if leaf == nil {
				leaf, want = &segment[i], lines["HOT"]
			}
			if path.Base(f.File) == c.script && !slices.Contains(want, f.Line) {
				return f.Function + " is on the wrong line"
			}
		}
	}
	switch {
	case w.Truncated != "":
		return "truncated"
	case !contains(names, c.lua):
		return "other functions than " + strings.Join(c.lua, ", ")
	case c.segments > 0 && len(w.Segments) < c.segments:
		return "segments are missing"
	}
	for _, b := range c.builtins {
		if !slices.Contains(builtins, b) {
			return b + " is missing"
		}
	}
	for _, v := range strings.Fields(c.values) {
		if !hasValue(leaf, v) {
			return v + " is missing"
		}
	}
	return ""
}

// contains says that the stack is the wanted one. Where callees are short,
// the leaf may be one of them or its caller.
func contains(names, want []string) bool {
	for cut := 0; cut < 3 && cut < len(want); cut++ {
		if slices.Equal(names, want[cut:]) {
			return cut == 0 || want[0] == "step" || want[0] == "add"
		}
	}
	return false
}

func hasValue(f *stack.Frame, want string) bool {
	name, text, _ := strings.Cut(want, "=")
	for _, v := range f.Values {
		if v.Name == name && (text == "" || v.Text == text) {
			return true
		}
	}
	return false
}

// marked reads which lines of a script bear which mark.
func marked(t testing.TB, script string) map[string][]int {
	t.Helper()
	source, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]int{}
	for i, line := range strings.Split(string(source), "\n") {
		if _, mark, ok := strings.Cut(line, "-- "); ok {
			mark = strings.TrimSpace(mark)
			lines[mark] = append(lines[mark], i+1)
		}
	}
	return lines
}
