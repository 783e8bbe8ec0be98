package profiler

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/stack"
)

// What testdata/points.lua writes.
var (
	pointHead = regexp.MustCompile(`^POINT (\d+)$`)
	pointLine = regexp.MustCompile(`^\t(.*):(\d+): in (?:main chunk|function ['<](.*)['>])$`)
)

// said is one frame as Lua's own traceback tells it.
type said struct {
	file  string
	line  int
	name  string // empty: Lua knows none
	start int    // where a function without a name begins; 0: unknown
}

// tracebacks reads the points of a file: frames leaf first, without those in C.
// Of more than 22 levels Lua leaves out the middle. It is seldom, where the
// garbage collector calls in between; such a point is there, and has no frames.
func tracebacks(t *testing.T, path string) map[int][]said {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, deep, point := map[int][]said{}, []int{}, 0
	for _, line := range strings.Split(string(text), "\n") {
		if m := pointHead.FindStringSubmatch(line); m != nil {
			point, _ = strconv.Atoi(m[1])
		} else if line == "\t..." {
			deep = append(deep, point)
		} else if m := pointLine.FindStringSubmatch(line); m != nil {
			s := said{file: filepath.Base(m[1]), name: m[3]}
			s.line, _ = strconv.Atoi(m[2])
			if i := strings.LastIndexByte(m[3], ':'); i >= 0 && strings.Contains(line, " in function <") {
				s.name = ""
				s.start, _ = strconv.Atoi(m[3][i+1:])
			}
			all[point] = append(all[point], s)
		}
	}
	for _, point := range deep {
		all[point] = nil
	}
	return all
}

// differs says in what a frame is not what Lua says it is; empty if it is.
func (s said) differs(f stack.Frame) string {
	name := f.Function[strings.LastIndexAny(f.Function, ".:")+1:]
	replaced := name == "last" && s.name == "way" // by a tail call, which leaves Lua the old name
	switch {
	case filepath.Base(f.File) != s.file || f.Line != s.line:
		return fmt.Sprintf("%s:%d and not %s:%d", filepath.Base(f.File), f.Line, s.file, s.line)
	case s.start > 0 && f.StartLine != s.start:
		return fmt.Sprintf("begins at line %d, not %d", f.StartLine, s.start)
	case s.name != "" && name != s.name && !replaced:
		return fmt.Sprintf("%s and not %s", f.Function, s.name)
	}
	return ""
}

// luaFrames returns the frames of functions in Lua, and the point at which the
// innermost stands; 0 if that is another function.
func luaFrames(s stack.Stack) (frames []stack.Frame, point int) {
	for _, f := range s.Frames {
		if f.Kind == stack.Lua || f.Kind == stack.Trace {
			frames = append(frames, f)
		}
	}
	if len(frames) == 0 || frames[0].Function != "here" || frames[0].Line != frames[0].StartLine {
		return frames, 0
	}
	i := slices.IndexFunc(frames[0].Values, func(v stack.Value) bool { return v.Name == "point" })
	if i < 0 {
		return frames, 0
	}
	point, _ = strconv.Atoi(frames[0].Values[i].Text)
	return frames, point
}

// Of 10,000 sampled Lua frames none is another one than the program's own
// traceback tells at the same point, through every way in which Lua calls Lua.
func TestFramesAgainstTracebacks(t *testing.T) {
	for _, mode := range []string{"on", "off"} {
		t.Run("jit "+mode, func(t *testing.T) {
			points := filepath.Join(t.TempDir(), "points")
			n := startNginx(t, 1, "", `init_by_lua_block { package.path = "TESTDATA/?.lua;" .. package.path }`,
				fmt.Sprintf(`location /go { content_by_lua_block { require("points").visit(%q, %q) } }`, points, mode))
			n.Trigger(t, "/go")
			letRun(t, n.Workers[0], 100*time.Millisecond)
			s, p := openSampler(t), openProcess(t, n.Workers[0])
			watch(t, s, p)
			var stacks []stack.Stack
			for end, enough := time.Now().Add(2*time.Minute), 0; enough < 10_000 && time.Now().Before(end); {
				take(t, s, 50, time.Second, func(x bpf.Sample) {
					r := p.Understand(x)
					stacks = append(stacks, r.Stack)
					if frames, point := luaFrames(r.Stack); point > 0 {
						enough += len(frames)
					}
				})
			}
			compare(t, stacks, tracebacks(t, points))
		})
	}
}

func compare(t *testing.T, stacks []stack.Stack, want map[int][]said) {
	t.Helper()
	held, elsewhere, good, whole := map[int]bool{}, 0, 0, 0
	wrong, cut := map[string]int{}, map[string]int{}
	for _, s := range stacks {
		if s.Truncated == "" {
			whole++
		} else {
			cut[s.Truncated]++
		}
		frames, point := luaFrames(s)
		if told, written := want[point]; point == 0 || written && told == nil {
			elsewhere++
			continue
		}
		held[point] = true
		for i, f := range frames {
			why := "Lua tells fewer frames"
			if i < len(want[point]) {
				why = want[point][i].differs(f)
			}
			if why == "" {
				good++
			} else {
				wrong[why+" at a point such as: "+lines(s)]++
			}
		}
		if s.Truncated == "" && len(frames) != len(want[point]) {
			wrong[fmt.Sprintf("%d frames and not %d: %s", len(frames), len(want[point]), lines(s))]++
		}
	}
	t.Logf("%d samples at %d points, %d whole; %d frames as Lua tells them; %d samples between points; cut: %v", len(stacks), len(held), whole, good, elsewhere, cut)
	for i, text := range slices.Sorted(maps.Keys(wrong)) {
		if i < 10 {
			t.Errorf("%d times %s", wrong[text], text)
		}
	}
	// Where samples wait for the test, some find what they need gone, and are cut.
	if good < 10_000 || elsewhere*5 > len(stacks) || whole*2 < len(stacks) {
		t.Errorf("%d right frames, %d of %d samples between points, %d whole", good, elsewhere, len(stacks), whole)
	}
}
