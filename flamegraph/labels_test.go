package flamegraph

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// labelled is a profile of one stack with the given labels per sample.
func labelled(t *testing.T, samples int, labels func(i int) []Label) *Profile {
	t.Helper()
	b := newBuilder("labelled")
	for i := range samples {
		if err := b.add([]uint32{b.frame(Frame{Name: "f", Kind: 1})}, b.set(labels(i)), int64(i+1), false); err != nil {
			t.Fatal(err)
		}
	}
	return b.finish()
}

func TestLabelsAreBounded(t *testing.T) {
	p := labelled(t, 6000, func(i int) []Label {
		return []Label{{"request", fmt.Sprint("GET /", i)}, {"worker", fmt.Sprint(i % 3)}}
	})
	q, dropped := p.faceted()
	l := q.pageLabels()
	if !slices.Equal(l.Keys, []string{"request", "worker"}) || len(dropped) != 0 {
		t.Fatalf("keys %q, dropped %q", l.Keys, dropped)
	}
	if n := len(l.Values[0]); n != maxValues+1 || l.Values[0][0] != otherValue || l.Values[0][1] != "GET /5999" {
		t.Errorf("%d requests, first %q: want the %d heaviest and %s", n, l.Values[0][:2], maxValues, otherValue)
	}
	if q.Total() != p.Total() || len(q.sets) > 3*(maxValues+1)+1 {
		t.Errorf("total %d in %d sets, want %d", q.Total(), len(q.sets), p.Total())
	}
}

func TestTooManyCombinationsDropAKey(t *testing.T) {
	p := labelled(t, 20000, func(i int) []Label {
		return []Label{{"a", fmt.Sprint(i % 49)}, {"b", fmt.Sprint(i % 47)}, {"c", fmt.Sprint(i % 43)}}
	})
	q, dropped := p.faceted()
	if !slices.Equal(dropped, []string{"a"}) || len(q.sets) > maxSets {
		t.Errorf("dropped %q, %d sets left", dropped, len(q.sets))
	}
	var b bytes.Buffer
	if _, err := WriteHTML(&b, p, HTMLOptions{}); err != nil || !strings.Contains(b.String(), "No filter by a: too many values") {
		t.Errorf("%v: the page does not say that a key was dropped", err)
	}
}

func TestTooManyKeys(t *testing.T) {
	p := labelled(t, 100, func(i int) []Label { return []Label{{fmt.Sprint("key", i), "v"}, {"worker", "1"}} })
	q, dropped := p.faceted()
	if n := len(q.pageLabels().Keys); n != maxKeys || len(dropped) != 101-maxKeys {
		t.Errorf("%d keys kept, %d dropped", n, len(dropped))
	}
}

func TestVMState(t *testing.T) {
	states := map[string]string{
		"main;gcd_[l] 1":                "interpreter",
		"main;gcd_[j] 1":                "compiled",
		"main;gcd_[l];floor_[b] 1":      "C called from Lua",
		"main;gcd_[l];memcpy 1":         "C called from Lua",
		"main;gcd_[l];atomic gc_[v] 1":  "atomic gc",
		"main;gcd_[l];write;sys_[k] 1":  "kernel",
		"main;gcd_[l];pcre;code_[p] 1":  "PCRE JIT",
		"main;epoll_wait 1":             "outside Lua",
		"gc_[v];memcpy 1":               "gc",
		"gc_[v];__gc handler x:1_[l] 1": "interpreter",
	}
	for line, want := range states {
		p := readText(t, line)
		if got := p.vmState(p.frameIDs(p.stacks[0])); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	given := labelled(t, 1, func(int) []Label { return []Label{{givenState, "interpreter"}} })
	given.frames[0].Kind = 3
	if q, _ := given.faceted(); !slices.Equal(q.pageLabels().Keys, []string{givenState}) {
		t.Errorf("keys %q: the profiler's own word is doubled", q.pageLabels().Keys)
	}
}
