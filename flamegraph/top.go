package flamegraph

import (
	"cmp"
	"slices"
)

// maxTop is how many functions the table keeps by self and by total.
const maxTop = 1000

// top sums self and total by frame over all stacks, the narrow ones too, and
// keeps the largest. A frame that calls itself counts once in a stack.
func (pg *page) top() [][5]int64 {
	p := pg.profile
	rows := make([][5]int64, len(p.frames))
	seen := make([]int, len(p.frames)) // number of the last stack that had it, from 1
	for i, r := range p.stacks {
		column := 1
		if r.base {
			column = 3
		}
		ids := p.frameIDs(r)
		for n, id := range ids {
			if n == len(ids)-1 {
				rows[id][column] += r.value
			}
			if seen[id] != i+1 {
				seen[id] = i + 1
				rows[id][column+1] += r.value
			}
		}
	}
	keep := make(map[int]bool)
	for column := 1; column <= 2; column++ {
		for _, id := range largest(rows, column) {
			keep[id] = true
		}
	}
	out := make([][5]int64, 0, len(keep))
	for id, row := range rows {
		if keep[id] {
			row[0] = int64(pg.frame(uint32(id)))
			out = append(out, row)
		}
	}
	return out
}

// largest returns the frames with the largest values in a column or in the
// base's column beside it.
func largest(rows [][5]int64, column int) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(max(rows[j][column], rows[j][column+2]), max(rows[i][column], rows[i][column+2]))
	})
	return order[:min(len(order), maxTop)]
}
