package profiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// stormVariable holds how long the storm lasts in a soak.
const stormVariable = "SPINGUARD_SOAK"

// storm samples all workers of an nginx that reloads all the time.
type storm struct {
	t         *testing.T
	sampler   *bpf.Sampler
	cache     *symbol.Cache
	nginx     *nginx
	processes map[int]*Process
	opened    int
	samples   int
	exiting   int // of samples, of processes that were dying
	whole     int
	frames    int // of Lua
	source    []string
	wrong     map[string]int
	cut       map[string]int
	problems  map[string]int
}

// follow watches new workers and forgets those that are gone.
func (s *storm) follow() {
	for pid, p := range s.processes {
		if !p.Alive() {
			_ = s.sampler.Unwatch(pid)
			_ = p.Close()
			delete(s.processes, pid)
		}
	}
	for _, pid := range children(s.nginx.Master) {
		if s.processes[pid] != nil {
			continue
		}
		p, err := Open(pid, s.cache)
		if err != nil {
			if !errors.Is(err, procmem.ErrGone) {
				s.problems["open: "+err.Error()]++
			}
			continue
		}
		s.opened++
		s.processes[pid] = p
		if err := s.sampler.Watch(bpf.Watch{PID: pid, TID: pid, Lua: p.LuaWatch(), Full: true}); err != nil {
			s.problems["watch: "+err.Error()]++
		}
	}
}

func (s *storm) take(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		x, err := s.sampler.Read(end)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			s.problems["read: "+err.Error()]++
			continue
		}
		if p := s.processes[x.PID]; p != nil {
			s.judge(p, p.Understand(x))
		}
	}
}

func (s *storm) judge(p *Process, r Result) {
	if !p.Alive() || strings.HasSuffix(r.Stack.Truncated, vmEnded) {
		s.exiting++ // its memory is gone, or going
		return
	}
	s.samples++
	frames := r.Stack.Frames
	if n := len(frames); r.Stack.Truncated == "" && n > 0 && frames[n-1].Function == "_start" {
		s.whole++
	} else {
		s.cut[r.State+": "+r.Stack.Truncated+": "+names(r.Stack)]++
	}
	for _, f := range frames {
		if (f.Kind == stack.Lua || f.Kind == stack.Trace) && f.Line > 0 {
			s.frames++
			if why := s.misnamed(f); why != "" {
				s.wrong[why+": "+lines(r.Stack)]++
			}
		}
	}
}

var madeChunk = regexp.MustCompile(`^made[0-9]{1,4}$`)

// misnamed holds a Lua frame against the source.
func (s *storm) misnamed(f stack.Frame) string {
	switch base := filepath.Base(f.File); {
	case madeChunk.MatchString(base):
		if f.Line != 1 || f.Function != "main chunk" {
			return fmt.Sprintf("%s:%d is %q", base, f.Line, f.Function)
		}
	case base == "storm.lua" && f.StartLine > 0:
		first, last := f.StartLine, f.StartLine
		for last < len(s.source) && !strings.HasPrefix(s.source[last], "end") {
			last++
		}
		name := f.Function[strings.LastIndexByte(f.Function, '.')+1:]
		// A function without a name at that instant is told by its place.
		named := first <= len(s.source) && strings.Contains(s.source[first-1], name+"(") ||
			f.Function == fmt.Sprintf("function <storm.lua:%d>", first)
		if !named || f.Line < first || f.Line > last+1 {
			return fmt.Sprintf("storm.lua:%d is %q, which begins at %d", f.Line, f.Function, first)
		}
	}
	return ""
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalisers freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Sixteen workers throw away traces and garbage, hold thousands of traces, and
// are replaced every second: no wrong name, no growth, no errors.
func TestReloadStorm(t *testing.T) {
	length := 8 * time.Second
	if text := os.Getenv(stormVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile("testdata/storm.lua")
	if err != nil {
		t.Fatal(err)
	}
	n := startNginx(t, 16, "", `init_by_lua_block { package.path = "TESTDATA/?.lua;" .. package.path; storm = require "storm" }`, `
		location /flush { content_by_lua_block { storm.flush() } }
		location /churn { content_by_lua_block { storm.churn() } }
		location /traces { content_by_lua_block { storm.traces() } }
		location /sort { content_by_lua_block { storm.sort() } }`)
	for _, path := range []string{"/flush", "/churn", "/traces", "/sort"} {
		n.Load(t, path, 2)
	}
	s := &storm{
		t: t, sampler: openSampler(t), cache: symbol.NewCache(64), nginx: n, processes: map[int]*Process{},
		source: strings.Split(string(source), "\n"), wrong: map[string]int{}, cut: map[string]int{}, problems: map[string]int{},
	}
	s.run(t.Context(), length/3)
	openBefore, before := s.left()
	s.run(t.Context(), length-length/3)
	for end := time.Now().Add(2 * time.Minute); (s.samples < 500 || s.frames < 500) && time.Now().Before(end); {
		s.run(t.Context(), length) // a crowded machine gives fewer samples
	}
	openAfter, after := s.left()
	report := fmt.Sprintf("%d workers opened, %d samples (%d more of exiting workers), %d Lua frames, %.2f %% whole, heap %d kB then %d kB, %d and %d descriptors",
		s.opened, s.samples, s.exiting, s.frames, 100*float64(s.whole)/float64(max(s.samples, 1)), before>>10, after>>10, openBefore, openAfter)
	t.Log(report)
	for _, bad := range []map[string]int{s.wrong, s.cut, s.problems} {
		for i, text := range slices.Sorted(maps.Keys(bad)) {
			if i < 5 {
				t.Logf("%d times %s", bad[text], text)
			}
		}
	}
	if len(s.wrong) > 0 || len(s.problems) > 0 {
		t.Errorf("%d wrong names, %d kinds of errors", len(s.wrong), len(s.problems))
	}
	if s.samples < 500 || s.frames < 500 || s.whole*100 < s.samples*97 {
		t.Errorf("not good enough: %s", report)
	}
	if after > before+before/2+4<<20 || openAfter > openBefore+16 {
		t.Errorf("growth: %s", report)
	}
}

// left forgets all workers and returns what is in use then: open descriptors
// and bytes of the heap.
func (s *storm) left() (open int, bytes uint64) {
	for pid, p := range s.processes {
		_ = s.sampler.Unwatch(pid)
		_ = p.Close()
		delete(s.processes, pid)
	}
	return descriptors(s.t), heap()
}

// run lets the storm blow for a while.
func (s *storm) run(ctx context.Context, d time.Duration) {
	next, seen := time.Now(), s.samples
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		// Sixteen processes that start keep a crowded machine busy for more than
		// a second: then the next ones wait until these have been seen at work.
		if now := time.Now(); !now.Before(next) && (s.samples >= seen+20 || now.After(next.Add(4*time.Second))) {
			next, seen = now.Add(time.Second), s.samples
			if err := unix.Kill(s.nginx.Master, unix.SIGHUP); err != nil {
				s.problems["reload: "+err.Error()]++
			}
		}
		s.follow()
		s.take(50 * time.Millisecond)
	}
}
