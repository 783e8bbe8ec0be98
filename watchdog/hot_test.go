package watchdog

import (
	"slices"
	"testing"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
)

func at(line int) sampled {
	return sampled{result: profiler.Result{Stack: stack.Stack{Frames: []stack.Frame{
		{Kind: stack.Native, Function: "memcpy"},
		{Kind: stack.Lua, Function: "find", File: "/srv/templates.lua", Line: line, StartLine: 9},
	}}}}
}

func TestRepresentativeIsWhereMostSamplesAre(t *testing.T) {
	w := &worker{recent: []sampled{at(11), at(13), at(13), at(12), at(13), at(11)}}
	best, lines := representative(w)
	if best.result.Stack.Frames[1].Line != 13 {
		t.Errorf("representative %+v, want the one at line 13", best.result.Stack.Frames)
	}
	hot := incident.Frame{Function: "find", File: "templates.lua", Loops: []int{12, 9}}
	if got, want := frameWithLines(hot, lines), "find (templates.lua:13, templates.lua:11, templates.lua:12, in a loop from templates.lua:9)"; got != want {
		t.Errorf("hot frame %q, want %q", got, want)
	}
}

func native(functions ...string) sampled {
	var s sampled
	for _, f := range functions {
		s.result.Stack.Frames = append(s.result.Stack.Frames, stack.Frame{Kind: stack.Native, Function: f})
	}
	return s
}

func TestATypicalStackIsDeep(t *testing.T) {
	connect := native("connect", "ngx_event_connect_peer", "ngx_http_upstream_connect", "loop", "main")
	samples := []sampled{native("epoll_wait", "loop", "main"), connect, connect, native("free", "loop", "main"), connect}
	if got := mostTypical(samples).result.Stack.Frames[1].Function; got != "ngx_event_connect_peer" {
		t.Errorf("typical stack with %s, want ngx_event_connect_peer", got)
	}
}

// The typical one gives the values of the evidence.
func TestASampleWithoutValuesIsTypicalOnlyAmongItsLike(t *testing.T) {
	glanced := at(13)
	glanced.glanced = true
	for _, x := range []struct {
		samples []sampled
		want    int
	}{{[]sampled{glanced, at(12), glanced, glanced}, 12}, {[]sampled{at(11), at(11), glanced}, 11}, {[]sampled{glanced, glanced}, 13}} {
		if got := mostTypical(x.samples).result.Stack.Frames[1].Line; got != x.want {
			t.Errorf("the one at line %d is typical, want %d", got, x.want)
		}
	}
}

func TestWithoutSamplesTheLastStackTells(t *testing.T) {
	w := &worker{result: at(13).result}
	if best, lines := representative(w); len(best.result.Stack.Frames) != 2 || lines != nil {
		t.Errorf("representative %+v with lines %v", best.result.Stack, lines)
	}
}

func TestAnInterruptIsNotPartOfTheLoop(t *testing.T) {
	interrupted := at(13)
	interrupted.result.Stack.Frames = append([]stack.Frame{{Kind: stack.Kernel, Function: "irqentry_exit"}}, interrupted.result.Stack.Frames...)
	best := mostTypical([]sampled{at(13), at(13), interrupted})
	if f := best.result.Stack.Frames[0]; f.Kind == stack.Kernel {
		t.Errorf("leaf %s of the kernel, want the loop's own", f.Function)
	}
}

func TestPlacesNameTheImageOrTheLine(t *testing.T) {
	got := places(stack.Stack{Frames: []stack.Frame{
		{Function: "gcd", File: "/lua/wrr.lua", Line: 12, Kind: stack.Lua},
		{Function: "main", Kind: stack.Native, Mapping: &stack.Mapping{Path: "/usr/sbin/nginx"}},
		{Function: "do_syscall_64", Kind: stack.Kernel},
	}})
	if want := []string{"gcd (wrr.lua:12)", "main (nginx)", "do_syscall_64"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
