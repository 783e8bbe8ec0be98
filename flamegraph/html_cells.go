package flamegraph

import (
	"cmp"
	"slices"
)

// cellKey says where a value belongs: to a node, under a label set, and
// whether its own frames were too narrow to keep.
type cellKey struct {
	node   int32
	set    uint32
	narrow bool
}

// cells sums the stacks by the deepest node that is left of each and by label
// set, as flat groups of five numbers.
func (p *Profile) cells(t *tree) []int64 {
	sums := make(map[cellKey]*[2]int64)
	walk := walker{t: t, path: []int32{0}, next: 1}
	for _, r := range p.stacks {
		ids := p.frameIDs(r)
		walk.to(ids)
		key := cellKey{walk.path[len(walk.path)-1], r.set, len(walk.path) <= len(ids)}
		v := sums[key]
		if v == nil {
			v = new([2]int64)
			sums[key] = v
		}
		if r.base {
			v[1] += r.value
		} else {
			v[0] += r.value
		}
	}
	keys := make([]cellKey, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y cellKey) int {
		return cmp.Or(cmp.Compare(x.node, y.node), cmp.Compare(x.set, y.set), cmp.Compare(number(x.narrow), number(y.narrow)))
	})
	out := make([]int64, 0, 5*len(keys))
	for _, k := range keys {
		out = append(out, int64(k.node), int64(k.set), number(k.narrow), sums[k][0], sums[k][1])
	}
	return out
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// walker follows the sorted stacks down a tree grown from them. As both have
// the same order, the next node to enter is always the next of the tree.
type walker struct {
	t    *tree
	path []int32
	next int32
	prev []uint32
}

func (w *walker) to(ids []uint32) {
	w.path = w.path[:min(len(w.path), commonPrefix(w.prev, ids)+1)]
	w.prev = ids
	for depth := len(w.path) - 1; depth < len(ids); depth++ {
		if int(w.next) == len(w.t.nodes) {
			return
		}
		n := &w.t.nodes[w.next]
		if n.parent != w.path[depth] || n.frame != ids[depth] {
			return
		}
		w.path = append(w.path, w.next)
		w.next++
	}
}
