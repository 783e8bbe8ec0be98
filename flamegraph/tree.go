package flamegraph

// root is the frame number of a tree's first node, which stands for all.
const root = ^uint32(0)

// node is one box. Values are in the profile's unit.
type node struct {
	frame  uint32
	parent int32
	depth  int32 // 0 is the root
	end    int32 // number of the first node that is not below this one

	start           int64 // sum of the values left of the box
	total, self     int64
	base, baseSelf  int64 // the same in the base profile
	small, smallOld int64 // value and base value of the children left out
}

// tree holds the boxes that are worth showing, parents before children,
// children in the order of their labels.
type tree struct {
	nodes   []node
	leftOut int // boxes dropped
}

// narrow tells whether a box of these values is too small to keep. It must
// say so of every box below as well, which a bound on the values does.
type narrow func(total, base int64) bool

// grow walks the sorted stacks once. Boxes that turn out to be too narrow when
// they close are dropped with everything below them.
// When more than limit boxes are kept it gives up and returns nil.
func (p *Profile) grow(drop narrow, limit int) *tree {
	g := grower{t: &tree{nodes: []node{{frame: root, parent: -1}}}, open: []int32{0}, drop: drop}
	for _, r := range p.stacks {
		common := int(r.shared)
		g.closeTo(common + 1)
		for _, id := range p.frameIDs(r)[common:] {
			g.push(id)
		}
		if len(g.t.nodes) > limit+len(g.open) {
			return nil
		}
		g.add(r)
	}
	g.closeTo(0)
	return g.t
}

type grower struct {
	t    *tree
	open []int32 // numbers of the nodes on the path, root first
	done int64   // sum of the values seen
	drop narrow
}

func (g *grower) push(frame uint32) {
	parent := g.open[len(g.open)-1]
	g.open = append(g.open, int32(len(g.t.nodes)))
	g.t.nodes = append(g.t.nodes, node{frame: frame, parent: parent, depth: int32(len(g.open) - 1), start: g.done})
}

func (g *grower) add(r record) {
	n := &g.t.nodes[g.open[len(g.open)-1]]
	if r.base {
		n.baseSelf += r.value
		n.base += r.value
		return
	}
	n.self += r.value
	n.total += r.value
	g.done += r.value
}

// closeTo closes nodes until so many are open.
func (g *grower) closeTo(depth int) {
	for len(g.open) > depth {
		i := g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		n := &g.t.nodes[i]
		n.end = int32(len(g.t.nodes))
		if n.parent < 0 {
			return
		}
		up := &g.t.nodes[n.parent]
		up.total += n.total
		up.base += n.base
		if g.drop(n.total, n.base) {
			up.small += n.total
			up.smallOld += n.base
			g.t.leftOut++
			g.t.nodes = g.t.nodes[:i]
		}
	}
}

// height is the number of levels, the root included.
func (t *tree) height() int {
	deepest := int32(0)
	for i := range t.nodes {
		deepest = max(deepest, t.nodes[i].depth)
	}
	return int(deepest) + 1
}

// smallTotal is the value of the stacks that end in a box left out.
func (t *tree) smallTotal() int64 {
	sum := int64(0)
	for i := range t.nodes {
		sum += t.nodes[i].small
	}
	return sum
}

func commonPrefix(a, b []uint32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// growAtMost grows a tree of at most limit nodes: it raises the least share
// of the total that a box must have until they fit, and returns that share.
func (p *Profile) growAtMost(limit int, least float64) (*tree, float64) {
	for {
		t := p.grow(func(total, base int64) bool {
			return share(total, p.total) < least && share(base, p.baseSum) < least
		}, limit)
		if t != nil && len(t.nodes) <= limit || least >= 1 {
			return t, least
		}
		least = max(least*1.6, 1e-7)
	}
}
