package flamegraph

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

func readText(t *testing.T, text string) *Profile {
	t.Helper()
	p, err := Read(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func folded(t *testing.T, p *Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteFolded(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFoldedMergesAndSorts(t *testing.T) {
	p := readText(t, "b;c 2\na;b 1\n\nb;c 3\r\nb 1\na;b;c 4")
	want := "# type=samples\n# unit=count\na;b 1\na;b;c 4\nb 1\nb;c 5\n"
	if got := folded(t, p); got != want {
		t.Errorf("folded:\n%s\nwant:\n%s", got, want)
	}
	if p.Total() != 11 || p.Stacks() != 4 {
		t.Errorf("total %d in %d stacks, want 11 in 4", p.Total(), p.Stacks())
	}
}

func TestFoldedKinds(t *testing.T) {
	p := readText(t, "main;gcd wrr.lua:12_[l];loop_[j];math.floor_[b];gc_[v];re_[p];sys_[k];inl_[i];[unknown];[lua] 1\n")
	kinds := map[string]stack.Kind{
		"main": stack.Native, "gcd wrr.lua:12": stack.Lua, "loop": stack.Trace, "math.floor": stack.Builtin, "gc": stack.VM,
		"re": stack.PCRE, "sys": stack.Kernel, "inl": stack.Native, "[unknown]": stack.Unknown, "[lua]": stack.Lua,
	}
	for _, f := range p.frames {
		if want, ok := kinds[f.Name]; !ok || f.Kind != want {
			t.Errorf("frame %q: kind %v, want %v", f.Name, f.Kind, want)
		}
	}
}

func TestFoldedRoundTrip(t *testing.T) {
	texts := []string{
		"main;gcd wrr.lua:12_[l];sys_[k] 7\n",
		"# samples_taken=9\n# samples_shown=7\n# samples_lost=2\n# lost_ring=2\n# host=a b\nmain;x 7\n",
		"a;b 2 5\na;gone 3 0\n", // a difference: base, now
	}
	for _, text := range texts {
		once := folded(t, readText(t, text))
		if twice := folded(t, readText(t, once)); twice != once {
			t.Errorf("folded of %q:\n%s\nread and written again:\n%s", text, once, twice)
		}
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if !strings.Contains(once, line+"\n") {
				t.Errorf("line %q is lost in:\n%s", line, once)
			}
		}
	}
}

func TestFoldedNumberInName(t *testing.T) {
	b := newBuilder("test")
	if err := b.add([]uint32{b.frame(Frame{Name: "part 12", Kind: stack.Native}), b.frame(Frame{Name: "a;b 3", Kind: stack.Native})}, 0, 4, false); err != nil {
		t.Fatal(err)
	}
	text := folded(t, b.finish())
	if again := readText(t, text); again.Differential() || again.Total() != 4 {
		t.Errorf("a number at the end of a name is read as a value: %q", text)
	}
}

func TestFoldedErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a;b 1\nrubbish\n":        `test: line 2: "rubbish": not a stack, a space and a whole number`,
		"a;b x\n":                 `test: line 1: "a;b x": not a stack, a space and a whole number`,
		"a inf\n":                 `test: line 1: "a inf": not a stack, a space and a whole number`,
		"a 5000000000000000000\n": "test: line 1: sample values: sum exceeds 2^62",
		"a 4000000000000000000\nb 4000000000000000000\n": "test: line 2: sample values: sum exceeds 2^62",
	} {
		if _, err := Read(strings.NewReader(text), "test"); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestFoldedLongAndDeep(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	p := readText(t, "main;"+long+" 3\nmain;"+long+"y 4\n")
	if len(p.frames) != 3 {
		t.Errorf("%d frames, want main and two long ones", len(p.frames))
	}
	for _, f := range p.frames {
		if len(f.Name) > maxText+64 {
			t.Errorf("name of %d bytes is kept", len(f.Name))
		}
	}
	deep := readText(t, strings.Repeat("f;", 3*maxDepth)+"leaf 1\n")
	ids := deep.frameIDs(deep.stacks[0])
	if len(ids) != maxDepth || deep.frames[ids[0]] != truncatedFrame || deep.frames[ids[len(ids)-1]].Name != "leaf" {
		t.Errorf("stack of %d frames, root %v: want %d frames, [truncated] at the root and the leaf kept", len(ids), deep.frames[ids[0]], maxDepth)
	}
}

func TestFractionalWeights(t *testing.T) {
	if p := readText(t, "a 1.6\n"); p.Total() != 2 {
		t.Errorf("total %d, want 2", p.Total())
	}
}
