package flamegraph

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomProfile has few names, so that stacks share prefixes, recur and nest.
func randomProfile(t *testing.T, seed uint64, stacks int) *Profile {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBuilder("random")
	for range stacks {
		ids := make([]uint32, rnd.IntN(12))
		for i := range ids {
			ids[i] = b.frame(Frame{Name: fmt.Sprintf("f%d", rnd.IntN(5)), Kind: 1})
		}
		set := b.set([]Label{{"worker", fmt.Sprint(rnd.IntN(3))}})
		if err := b.add(ids, set, rnd.Int64N(20), rnd.IntN(4) == 0); err != nil {
			t.Fatal(err)
		}
	}
	return b.finish()
}

// naive sums values by the path of names, the way no one would store it.
func naive(p *Profile) map[string][2]int64 {
	sums := make(map[string][2]int64)
	for _, r := range p.stacks {
		path := ""
		for _, id := range append([]uint32{root}, p.frameIDs(r)...) {
			if id != root {
				path += ";" + p.frames[id].Name
			}
			v := sums[path]
			if r.base {
				v[1] += r.value
			} else {
				v[0] += r.value
			}
			sums[path] = v
		}
	}
	return sums
}

func pathOf(p *Profile, t *tree, i int32) string {
	if t.nodes[i].parent < 0 {
		return ""
	}
	return pathOf(p, t, t.nodes[i].parent) + ";" + p.frames[t.nodes[i].frame].Name
}

func TestTreeAgainstNaive(t *testing.T) {
	for seed := range uint64(20) {
		p := randomProfile(t, seed, 300)
		for _, least := range []int64{0, 1, 15, 60, 1e6} {
			checkTree(t, p, least)
			checkTree(t, p.callers(), least)
		}
	}
}

func checkTree(t *testing.T, p *Profile, least int64) {
	t.Helper()
	tr := p.grow(func(total, base int64) bool { return total < least && base < least }, 1<<30)
	sums, kept := naive(p), 0
	for i := range tr.nodes {
		n := &tr.nodes[i]
		if v := sums[pathOf(p, tr, int32(i))]; v != [2]int64{n.total, n.base} {
			t.Fatalf("%s: %d, base %d; want %v", pathOf(p, tr, int32(i)), n.total, n.base, v)
		}
		children := int64(0)
		for j := int32(i) + 1; j < n.end; j++ {
			if c := &tr.nodes[j]; c.parent == int32(i) {
				children += c.total
				if c.start < n.start || c.start+c.total > n.start+n.total {
					t.Fatalf("%s reaches out of its parent", pathOf(p, tr, j))
				}
			}
		}
		if children+n.self+n.small != n.total {
			t.Fatalf("%s: self %d, children %d, left out %d: not %d", pathOf(p, tr, int32(i)), n.self, children, n.small, n.total)
		}
	}
	for path, v := range sums {
		if path == "" || v[0] >= least || v[1] >= least {
			kept++
		}
	}
	if kept != len(tr.nodes) || len(sums)-kept != tr.leftOut {
		t.Fatalf("least %d: %d nodes and %d left out, want %d and %d", least, len(tr.nodes), tr.leftOut, kept, len(sums)-kept)
	}
	checkCells(t, p, tr)
}

// checkCells: the cells of a tree sum up to the tree's own values.
func checkCells(t *testing.T, p *Profile, tr *tree) {
	t.Helper()
	self := make([][2]int64, len(tr.nodes))
	small := make([][2]int64, len(tr.nodes))
	cells := p.cells(tr)
	for i := 0; i < len(cells); i += 5 {
		to := self
		if cells[i+2] == 1 {
			to = small
		}
		to[cells[i]][0] += cells[i+3]
		to[cells[i]][1] += cells[i+4]
	}
	for i, n := range tr.nodes {
		if self[i] != [2]int64{n.self, n.baseSelf} || small[i] != [2]int64{n.small, n.smallOld} {
			t.Fatalf("node %d: cells %v, narrow %v; want %d/%d and %d/%d", i, self[i], small[i], n.self, n.baseSelf, n.small, n.smallOld)
		}
	}
}

func TestGrowAtMost(t *testing.T) {
	p := randomProfile(t, 7, 3000)
	for _, limit := range []int{1, 5, 100, 1000} {
		if tr, least := p.growAtMost(limit, 1e-9); len(tr.nodes) > limit {
			t.Errorf("%d nodes at a share of %g, want at most %d", len(tr.nodes), least, limit)
		}
	}
}

// TestSortIsIndependentOfOrder: the same stacks in another order give the
// same profile.
func TestSortIsIndependentOfOrder(t *testing.T) {
	var lines []string
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("a%d;b%d;c%d %d", rnd.IntN(3), rnd.IntN(20), rnd.IntN(20), i))
	}
	want := folded(t, readText(t, strings.Join(lines, "\n")))
	rnd.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if got := folded(t, readText(t, strings.Join(lines, "\n"))); got != want {
		t.Error("another order of the lines gives another profile")
	}
}
