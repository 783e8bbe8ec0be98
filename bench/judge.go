package main

import (
	"bufio"
	"os"
	"strings"

	"github.com/google/pprof/profile"
)

// tally counts how good the stacks of a capture are.
type tally struct {
	samples, whole, lua int64
}

// luaNames are the Lua functions of the measured workers.
var luaNames = map[string]bool{"gcd": true, "stuck": true, "work": true, "render": true}

// roots are the functions that a whole stack ends in; the later ones are those
// of Go's threads and goroutines.
var roots = map[string]bool{
	"main": true, "_start": true, "__clone3": true, "clone3": true, "clone": true,
	"runtime.goexit": true, "runtime.mstart": true, "runtime.rt0_go": true, "runtime.main": true,
	// The scheduler's own stack begins where a goroutine was left for good.
	"runtime.mcall": true, "runtime.morestack": true, "runtime.clone": true,
}

func (t *tally) add(names []string, n int64) {
	t.samples += n
	whole, lua := false, false
	for _, name := range names {
		whole, lua = whole || roots[strings.TrimSuffix(name, ".abi0")], lua || luaNames[name]
		if name == "[truncated]" {
			whole = false
			break
		}
	}
	if whole {
		t.whole += n
	}
	if lua {
		t.lua += n
	}
}

// judgeProfile judges the stacks of a pprof file.
func judgeProfile(path string) (t tally, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer func() { _ = f.Close() }()
	p, err := profile.Parse(f)
	if err != nil {
		return t, err
	}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, line.Function.Name)
			}
		}
		t.add(names, s.Value[0])
	}
	return t, nil
}

// judgeScript judges what perf script prints: a line for each sample, then one
// for each frame, "    address name+offset (file)", then an empty one.
func judgeScript(path string) (t tally, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var names []string
	inside := false
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.TrimSpace(line) == "":
			if inside {
				t.add(names, 1)
			}
			names, inside = nil, false
		case !inside:
			inside = true
		default:
			if words := strings.Fields(line); len(words) > 1 {
				name, _, _ := strings.Cut(words[1], "+0x")
				names = append(names, name)
			}
		}
	}
	if inside {
		t.add(names, 1)
	}
	return t, lines.Err()
}
