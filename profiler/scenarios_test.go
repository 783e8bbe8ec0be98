package profiler

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/stack"
)

// lineOf returns the line of a test module that carries a mark.
func lineOf(t testing.TB, file, mark string) int {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if strings.HasSuffix(line, "-- "+mark) {
			return i + 1
		}
	}
	t.Fatalf("%s: no mark %s", file, mark)
	return 0
}

// place finds the first frame at "file:MARK" from an index on, or -1.
func place(t testing.TB, s stack.Stack, from int, where string) int {
	t.Helper()
	file, mark, _ := strings.Cut(where, ":")
	line := lineOf(t, file, mark)
	i := slices.IndexFunc(s.Frames[from:], func(f stack.Frame) bool {
		return f.Line == line && strings.HasSuffix(f.File, file)
	})
	if i < 0 {
		return -1
	}
	return from + i
}

// scenario is a loop, and the places that must be on its stacks, leaf first.
type scenario struct {
	name   string
	lua    string
	places []string
}

var scenarios = []scenario{
	{"trace", "cases.gcd()", []string{"cases.lua:GCD"}},
	{"interpreter", "interpreted.gcd()", []string{"interpreted.lua:GCD"}},
	{"floor and modulo", "interpreted.floor()", []string{"interpreted.lua:FLOOR"}},
	{"pattern", "cases.pattern()", []string{"cases.lua:PATTERN"}},
	{"recursion", "cases.breathe()", []string{"cases.lua:BREATHE"}},
	{"regex", `cases.regex("")`, []string{"cases.lua:REGEX"}},
	{"deep regex", "cases.deep()", []string{"cases.lua:DEEP"}},
	{"compiled regex", `cases.regex("jo")`, []string{"cases.lua:REGEX"}},
	{"json", "cases.cjson()", []string{"cases.lua:JSON"}},
	{"sort", "cases.sort()", []string{"cases.lua:SORT"}},
	{"garbage", "cases.garbage()", []string{"cases.lua:GARBAGE"}},
	// What a trace that is gone by now did is known by its function only.
	{"flushed traces", "cases.flush()", nil},
	{"thousands of traces", "cases.traces()", nil},
	{"coroutines", "cases.coroutines()", []string{"cases.lua:LOOP", "cases.lua:INNER", "cases.lua:OUTER", "cases.lua:START"}},
	{"pcall", "cases.pcall()", []string{"cases.lua:LOOP", "cases.lua:PROTECTED"}},
	{"xpcall handler", "cases.xpcall()", []string{"cases.lua:LOOP", "cases.lua:HANDLER"}},
	{"finaliser", "cases.finaliser()", []string{"cases.lua:LOOP", "cases.lua:FINALISER", "cases.lua:COLLECT"}},
	{"callback", "cases.callback()", []string{"cases.lua:LOOP", "cases.lua:CALLBACK", "cases.lua:QSORT"}},
	{"hook", "cases.hook()", []string{"cases.lua:LOOP", "cases.lua:HOOK"}},
}

// quality counts how good the stacks of a worker are.
type quality struct {
	samples, whole, lua, placed int
	pcre                        int            // with code compiled by PCRE
	prints                      map[uint64]int // fingerprints of what was running
	states                      map[string]int
	cut                         map[string]int
	bad                         map[string]int
}

func newQuality() *quality {
	return &quality{cut: map[string]int{}, bad: map[string]int{}, states: map[string]int{}, prints: map[uint64]int{}}
}

func (q *quality) String() string {
	return fmt.Sprintf("%d samples: %.2f %% whole, %.2f %% with Lua, %.2f %% in the right place, %.2f %% in compiled regexes, states %v",
		q.samples, q.share(q.whole), q.share(q.lua), q.share(q.placed), q.share(q.pcre), q.states)
}

func (q *quality) share(n int) float64 { return 100 * float64(n) / float64(max(q.samples, 1)) }

// add judges one stack: whole from the leaf to the entry of the process.
func (q *quality) add(t testing.TB, r Result, places []string) {
	t.Helper()
	q.samples++
	frames := r.Stack.Frames
	whole := r.Stack.Truncated == "" && len(frames) > 0 && frames[len(frames)-1].Function == "_start"
	if whole {
		q.whole++
	} else {
		q.cut[r.State+": "+r.Stack.Truncated+": "+names(r.Stack)]++
	}
	if slices.ContainsFunc(frames, func(f stack.Frame) bool { return f.Kind == stack.Lua || f.Kind == stack.Trace }) {
		q.lua++
	}
	if slices.ContainsFunc(frames, func(f stack.Frame) bool { return f.Kind == stack.PCRE }) {
		q.pcre++
	}
	q.states[r.State]++
	at := 0
	for _, where := range places {
		if at = place(t, r.Stack, at, where); at < 0 {
			q.bad[lines(r.Stack)]++
			return
		}
		at++
	}
	q.placed++
}

// lines is a stack in one line.
func lines(s stack.Stack) string {
	var out []string
	for _, f := range s.Frames {
		if f.Line > 0 {
			out = append(out, fmt.Sprintf("%s(%s)", f.Function, f.Place()))
		} else {
			out = append(out, f.Function)
		}
	}
	return strings.Join(out, " < ")
}

// aMinute is what a crowded machine may take for what takes a second.
const aMinute = time.Minute

// measure samples a worker and judges its stacks.
func measure(t testing.TB, pid, n int, places []string, show bool) *quality {
	t.Helper()
	s, p := openSampler(t), openProcess(t, pid)
	watch(t, s, p)
	q := newQuality()
	take(t, s, n, aMinute, func(sample bpf.Sample) {
		r := p.Understand(sample)
		q.add(t, r, places)
		if !sample.InKernel || sample.Syscall != 232 { // epoll_wait: between two turns
			q.prints[r.Lower()]++
		}
		if show && q.samples%(n/2) == 1 {
			t.Log(r.State, r.Stack.Truncated, lines(r.Stack))
		}
	})
	return q
}

func report(t testing.TB, q *quality) {
	t.Helper()
	t.Log(q)
	shown := 0
	for text, n := range q.cut {
		if shown++; shown <= 4 {
			t.Logf("%d cut: %s", n, text)
		}
	}
	shown = 0
	for text, n := range q.bad {
		if shown++; shown <= 4 {
			t.Logf("%d misplaced: %s", n, text)
		}
	}
}

// letRun waits until a process has used that much more CPU: what comes before
// its loop is over then, also where it gets little of a CPU.
func letRun(t testing.TB, pid int, cpu time.Duration) {
	t.Helper()
	from := usedCPU(t, pid)
	for end := time.Now().Add(time.Minute); usedCPU(t, pid)-from < cpu; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d does not run", pid)
		}
	}
}

// usedCPU is the CPU time of a process.
func usedCPU(t testing.TB, pid int) (ns time.Duration) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		_, err = fmt.Sscan(string(text), (*int64)(&ns))
	}
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// At least 99 of 100 stacks reach from the entry of the process to the leaf,
// with the Lua functions and the looping line. While one handler runs, whatever
// it does, its fingerprint stays.
func TestScenarios(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			n := startNginx(t, 1, "pcre_jit on;", luaCases, "location /go { content_by_lua_block { "+c.lua+" } }")
			n.Trigger(t, "/go")
			letRun(t, n.Workers[0], 150*time.Millisecond)
			q := measure(t, n.Workers[0], 400, c.places, testing.Verbose())
			report(t, q)
			if q.samples < 100 || q.share(q.whole) < 99 || q.share(q.lua) < 99 || q.share(q.placed) < 99 {
				t.Errorf("not good enough: %v", q)
			}
			if len(q.prints) != 1 || q.prints[0] > 0 {
				t.Errorf("%d fingerprints of one handler, %d samples without", len(q.prints), q.prints[0])
			}
			if compiled := c.name == "compiled regex"; compiled != (q.share(q.pcre) > 80) || !compiled && q.pcre > 0 {
				t.Errorf("%d of %d samples show code of PCRE", q.pcre, q.samples)
			}
		})
	}
}

// Under load the stacks are short-lived: what was copied must be enough.
func TestScenariosUnderLoad(t *testing.T) {
	n := startNginx(t, 1, "", luaCases+`
		upstream backend { server 127.0.0.1:PORT; keepalive 8; }`, `
		location /proxy { proxy_pass http://backend/text; proxy_http_version 1.1; proxy_set_header Connection ""; }
		location /text { return 200 "some text\n"; }
		location /lua { content_by_lua_block { ngx.say(cases.render(20000)) } }
		location /sub { content_by_lua_block { local r = ngx.location.capture("/lua"); ngx.print(r.body) } }`)
	n.Load(t, "/proxy", 4)
	n.Load(t, "/sub", 2)
	q := measure(t, n.Workers[0], 800, nil, false)
	report(t, q)
	if q.samples < 300 || q.share(q.whole) < 99 {
		t.Errorf("not good enough: %v", q)
	}
}

// An idle worker gets to work: its first stacks count, too.
func TestIdleToBusy(t *testing.T) {
	n := startNginx(t, 1, "", luaCases, "location /go { content_by_lua_block { cases.gcd() } }")
	s, p := openSampler(t), openProcess(t, n.Workers[0])
	watch(t, s, p)
	n.Trigger(t, "/go")
	q := newQuality()
	take(t, s, 150, aMinute, func(x bpf.Sample) { q.add(t, p.Understand(x), nil) })
	report(t, q)
	if q.samples < 100 || q.share(q.whole) < 99 {
		t.Errorf("not good enough: %v", q)
	}
}
