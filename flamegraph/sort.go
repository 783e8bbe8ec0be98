package flamegraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

// rank renumbers the frames in the order of their labels, so that comparing
// numbers compares names.
func (p *Profile) rank() {
	order := make([]uint32, len(p.frames))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(i, j uint32) int {
		x, y := p.frames[i], p.frames[j]
		return cmp.Or(strings.Compare(x.Label(), y.Label()), strings.Compare(x.Name, y.Name),
			strings.Compare(x.Place, y.Place), strings.Compare(x.Image, y.Image), cmp.Compare(x.Kind, y.Kind))
	})
	sorted := make([]Frame, len(order))
	to := make([]uint32, len(order))
	for n, i := range order {
		sorted[n] = p.frames[i]
		to[i] = uint32(n)
	}
	p.frames = sorted
	p.words.renumber(to)
}

// sortStacks orders the stacks by their frames and merges equal ones.
func (p *Profile) sortStacks() {
	s := sorter{words: &p.words, seed: 0x9e3779b9}
	s.sort(p.stacks, 0)
	kept, self := p.stacks[:0], make([]int64, len(p.frames))
	var before []uint32
	for i, r := range p.stacks {
		ids := p.frameIDs(r)
		r.shared = uint16(commonPrefix(before, ids))
		if !r.base && len(ids) > 0 {
			self[ids[len(ids)-1]] += r.value
		}
		if n := len(kept) - 1; i > 0 && r.same(kept[n].depth) && kept[n].set == r.set && kept[n].base == r.base {
			kept[n].value += r.value
			continue
		}
		kept, before = append(kept, r), ids
	}
	p.stacks, p.self = kept, make(map[stack.Kind]int64)
	for i, value := range self {
		if value != 0 {
			p.self[p.frames[i].Kind] += value
		}
	}
}

// same says that a record has all frames of the one before it, which is so deep.
func (r record) same(depth uint16) bool { return r.shared == r.depth && r.depth == depth }

// sorter is a multikey quicksort: stacks share long prefixes, and this looks
// at each frame of a prefix about once. Pivots are random, so that no order
// of the input is a bad one.
type sorter struct {
	words *arena
	seed  uint32
}

// key returns the frame at a depth plus one, or 0 past the leaf.
func (s *sorter) key(r record, depth int) uint64 {
	if depth >= int(r.depth) {
		return 0
	}
	at := r.at + uint32(depth)
	return uint64(s.words.chunks[at>>chunkBits][at&(chunkWords-1)]) + 1
}

func (s *sorter) sort(rs []record, depth int) {
	for len(rs) > 1 {
		if len(rs) <= 8 {
			slices.SortFunc(rs, func(x, y record) int { return s.compare(x, y, depth) })
			return
		}
		s.seed = s.seed*1664525 + 1013904223
		pivot := s.key(rs[int(s.seed>>1)%len(rs)], depth)
		less, more := s.partition(rs, depth, pivot)
		s.sort(rs[:less], depth)
		if pivot == 0 {
			slices.SortFunc(rs[less:more], bySet)
		} else {
			s.sort(rs[less:more], depth+1)
		}
		rs = rs[more:]
	}
}

// partition moves the records below the pivot to the front and those above it
// to the back, and returns where the middle begins and ends.
func (s *sorter) partition(rs []record, depth int, pivot uint64) (less, more int) {
	more = len(rs)
	for i := 0; i < more; {
		switch k := s.key(rs[i], depth); {
		case k < pivot:
			rs[less], rs[i] = rs[i], rs[less]
			less++
			i++
		case k > pivot:
			more--
			rs[more], rs[i] = rs[i], rs[more]
		default:
			i++
		}
	}
	return less, more
}

func (s *sorter) compare(x, y record, depth int) int {
	a, b := s.words.get(x.at, x.depth), s.words.get(y.at, y.depth)
	return cmp.Or(slices.Compare(a[min(depth, len(a)):], b[min(depth, len(b)):]), bySet(x, y))
}

// bySet orders records of the same stack: the base last, then by labels.
func bySet(x, y record) int {
	if x.base != y.base {
		if y.base {
			return -1
		}
		return 1
	}
	return cmp.Compare(x.set, y.set)
}
