package profiler

import (
	"bytes"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/profiler/stack"
)

var testMapping = &stack.Mapping{Start: 0x400000, Limit: 0x500000, Offset: 0x1000, Path: "/usr/sbin/nginx", BuildID: "ab12"}

func mixedStack() stack.Stack {
	return stack.Stack{Frames: []stack.Frame{
		{Kind: stack.Kernel, Function: "do_syscall_64", Address: 0xffffffff81000000},
		{Kind: stack.Trace, Function: "gcd", File: "wrr.lua", Line: 12, StartLine: 10, Values: []stack.Value{{Name: "a", Text: "nan"}}},
		{Kind: stack.Lua, Function: "pick", File: "wrr.lua", Line: 30, StartLine: 20},
		{Kind: stack.Builtin, Function: "pcall"},
		{Kind: stack.VM, Function: "[gc]"},
		{Kind: stack.PCRE, Function: "[pcre-jit]", Address: 0x7f0000001234},
		{Kind: stack.Native, Function: "ngx_process_events_and_timers", Address: 0x448446, Mapping: testMapping},
		{Kind: stack.Native, Function: "nginx+0x53000", Address: 0x453000, Mapping: testMapping},
		{Kind: stack.Unknown, Function: "[unknown]", Address: 0x1234},
	}}
}

func commentOf(t *testing.T, p *profile.Profile, key string) string {
	t.Helper()
	for _, c := range p.Comments {
		if v, ok := strings.CutPrefix(c, key+"="); ok {
			return v
		}
	}
	t.Fatalf("comment %q is missing in %q", key, p.Comments)
	return ""
}

func TestProfileKeepsKinds(t *testing.T) {
	b := NewBuilder(time.Unix(1700000000, 0), time.Second/49)
	b.SetDuration(2 * time.Second)
	b.Add(Result{Stack: mixedStack(), State: "trace"}, 20*time.Millisecond, Labels{Proxy: "nginx", Worker: "17", Upstream: "shop"})
	b.Add(Result{Stack: mixedStack(), State: "trace"}, 20*time.Millisecond, Labels{Proxy: "nginx", Worker: "17", Upstream: "shop"})
	p := encoded(t, b)
	if len(p.Sample) != 1 || p.Sample[0].Value[0] != 2 || p.Sample[0].Value[1] != int64(40*time.Millisecond) {
		t.Fatalf("samples %v, want one of 2 and 40 ms", p.Sample)
	}
	want := []string{"[kernel]", "[trace]", "[lua]", "[builtin]", "[vm]", "[pcre]", "/usr/sbin/nginx", "/usr/sbin/nginx", "[unknown]"}
	for i, l := range p.Sample[0].Location {
		if l.Mapping.File != want[i] {
			t.Errorf("frame %d lies in %q, want %q", i, l.Mapping.File, want[i])
		}
	}
	if id := p.Sample[0].Location[6].Mapping.BuildID; id != "ab12" {
		t.Errorf("build id %q", id)
	}
	if got := p.Sample[0].Label["vm_state"]; len(got) != 1 || got[0] != "trace" {
		t.Errorf("vm_state %q", got)
	}
	if line := p.Sample[0].Location[1].Line[0]; line.Line != 12 || line.Function.Filename != "wrr.lua" || line.Function.StartLine != 10 {
		t.Errorf("line %+v", line)
	}
	if n := commentOf(t, p, "frames_unnamed"); n != "4" {
		t.Errorf("frames_unnamed=%s, want 4", n)
	}
}

// pprof takes the first mapping for that of the program.
func TestProgramComesFirst(t *testing.T) {
	libc := &stack.Mapping{Start: 0x700000, Limit: 0x800000, Path: "/lib/libc.so.6"}
	start := stack.Frame{Kind: stack.Native, Function: "_start", Address: 0x400010, Mapping: testMapping}
	b := NewBuilder(time.Time{}, time.Second/49)
	b.Add(Result{Stack: stack.Stack{Frames: []stack.Frame{{Kind: stack.Native, Function: "a", Address: 0x700010, Mapping: libc}}, Truncated: "cut window"}}, 1, Labels{})
	for range 2 {
		b.Add(Result{Stack: stack.Stack{Frames: append(mixedStack().Frames[:3:3], start)}}, 1, Labels{})
	}
	if p := encoded(t, b); p.Mapping[0].File != testMapping.Path || p.Mapping[0].BuildID != testMapping.BuildID {
		t.Errorf("first mapping %+v", p.Mapping[0])
	}
}

func encoded(t *testing.T, b *Builder) *profile.Profile {
	t.Helper()
	p, err := b.Profile()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := p.Write(&buf); err != nil {
		t.Fatal(err)
	}
	back, err := profile.Parse(&buf)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestTruncatedStacksHaveTheirOwnRoot(t *testing.T) {
	b := NewBuilder(time.Time{}, time.Second/49)
	b.Add(Result{Stack: stack.Stack{Frames: mixedStack().Frames[:3], Truncated: "frame 7: no rule for nginx+0x4a210"}}, 1, Labels{})
	b.Add(Result{}, 1, Labels{})
	p := encoded(t, b)
	for _, s := range p.Sample {
		if root := s.Location[len(s.Location)-1]; root.Line[0].Function.Name != truncatedRoot {
			t.Errorf("root is %q", root.Line[0].Function.Name)
		}
	}
	if commentOf(t, p, "truncated_no_rule") != "1" || commentOf(t, p, "truncated_no_frames") != "1" || commentOf(t, p, "samples_truncated") != "2" {
		t.Errorf("comments %q", p.Comments)
	}
}

// Samples taken are samples shown and samples lost, whatever happens.
func TestNoSampleVanishes(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for round := range 50 {
		b := NewBuilder(time.Time{}, time.Second/49)
		var added, lost uint64
		for range 200 {
			if random.Intn(4) == 0 {
				n := uint64(random.Intn(3))
				b.Lost(fmt.Sprint("reason ", random.Intn(100)), n)
				lost += n
				continue
			}
			s := mixedStack()
			s.Frames = s.Frames[random.Intn(len(s.Frames)+1):]
			b.Add(Result{Stack: s}, time.Millisecond, Labels{Worker: strconv.Itoa(random.Intn(3))})
			added++
		}
		p := encoded(t, b)
		var shown int64
		for _, s := range p.Sample {
			shown += s.Value[0]
		}
		if uint64(shown) != added {
			t.Fatalf("round %d: %d samples shown of %d added", round, shown, added)
		}
		taken, _ := strconv.ParseUint(commentOf(t, p, "samples_taken"), 10, 64)
		if taken != added+lost {
			t.Fatalf("round %d: samples_taken=%d, want %d", round, taken, added+lost)
		}
		var byReason uint64
		for _, c := range p.Comments {
			if k, v, _ := strings.Cut(c, "="); strings.HasPrefix(k, "lost_") {
				n, _ := strconv.ParseUint(v, 10, 64)
				byReason += n
			}
		}
		if byReason != lost {
			t.Fatalf("round %d: lost by reason %d, want %d", round, byReason, lost)
		}
	}
}

func TestProfileDoesNotDependOnOrder(t *testing.T) {
	var inputs []Result
	for i := range 40 {
		s := mixedStack()
		s.Frames[1].Line = i % 7
		s.Frames = s.Frames[i%3:]
		inputs = append(inputs, Result{Stack: s})
	}
	var first []byte
	for round := range 5 {
		rand.New(rand.NewSource(int64(round))).Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
		b := NewBuilder(time.Unix(5, 0), time.Second/49)
		for i, r := range inputs {
			b.Add(r, time.Millisecond, Labels{Worker: strconv.Itoa(len(r.Stack.Frames))})
			_ = i
		}
		p, err := b.Profile()
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if err := p.WriteUncompressed(&buf); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = buf.Bytes()
		} else if !bytes.Equal(first, buf.Bytes()) {
			t.Fatalf("round %d: another profile from the same samples", round)
		}
	}
}

func TestReasonKey(t *testing.T) {
	for reason, want := range map[string]string{
		"frame 7: no rule for nginx+0x4a210": "no_rule",
		"window cut at 16384 bytes":          "window_cut",
		"ring full":                          "ring_full",
		"":                                   "unknown",
		"12345":                              "unknown",
		"no_frames":                          "no_frames",
	} {
		if got := reasonKey(reason); got != want {
			t.Errorf("reasonKey(%q) = %q, want %q", reason, got, want)
		}
	}
	tl := tally{}
	for i := range 1000 {
		tl.add(fmt.Sprint(i), 1)
	}
	if len(tl) > maxReasons+1 || tl.sum() != 1000 {
		t.Errorf("%d reasons, sum %d", len(tl), tl.sum())
	}
}
