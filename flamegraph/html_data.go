package flamegraph

import (
	"fmt"
	"strings"
)

// page is the data of the HTML page. Its arrays are flat, to be small.
type page struct {
	Unit      string     `json:"unit"`
	Diff      bool       `json:"diff"`
	Total     int64      `json:"total"`
	BaseTotal int64      `json:"baseTotal"`
	Frames    [][4]any   `json:"frames"` // label, kind, place, image
	Down      pageTree   `json:"down"`   // callees
	Up        pageTree   `json:"up"`     // callers
	Top       [][5]int64 `json:"top"`    // frame, self, total, base self, base total
	Labels    pageLabels `json:"labels"`

	notes   []string
	numbers map[uint32]int // of frames in Frames
	profile *Profile
}

// pageTree lists nodes, parents first; node 0 is the root and has no frame.
type pageTree struct {
	Frame  []int   `json:"frame"`
	Parent []int32 `json:"parent"`
	Cells  []int64 `json:"cells"` // node, label set, 1 if narrow, value, base value
}

// pageLabels are the label sets: for each set and key the number of the value.
type pageLabels struct {
	Keys   []string   `json:"keys"`
	Values [][]string `json:"values"`
	Sets   [][]int    `json:"sets"`
}

// leastShare is where the search for a tree that fits begins: a hundredth of
// a pixel of the unzoomed graph.
const leastShare = 1e-5

func newPage(p *Profile, limit int) (*page, Drawn) {
	notes := []string{p.Account.Sentence()}
	if s := p.Account.notes(); s != "" {
		notes = append(notes, s)
	}
	q, dropped := p.faceted()
	pg := &page{
		Unit: p.Unit, Diff: p.diff, Total: p.total, BaseTotal: p.baseSum,
		Frames: [][4]any{}, numbers: make(map[uint32]int), profile: q, notes: notes,
	}
	down, least := q.growAtMost(limit, leastShare)
	pg.Down = pg.tree(q, down)
	pg.narrowNote(down, least, "callees")
	drawn := Drawn{Frames: len(down.nodes), LeftOut: down.leftOut}
	if p.diff {
		pg.vanishedNotes(down)
	}
	turned := q.callers()
	up, least := turned.growAtMost(limit, leastShare)
	pg.Up = pg.tree(turned, up)
	pg.narrowNote(up, least, "callers")
	pg.Labels = q.pageLabels()
	pg.Top = pg.top()
	if len(dropped) > 0 {
		pg.notes = append(pg.notes, fmt.Sprintf("No filter by %s: too many values to keep in the page.", fit(strings.Join(dropped, ", "), 300)))
	}
	return pg, drawn
}

// frame returns the number of a frame in the page.
func (pg *page) frame(id uint32) int {
	n, ok := pg.numbers[id]
	if !ok {
		n = len(pg.Frames)
		pg.numbers[id] = n
		f := pg.profile.frames[id]
		pg.Frames = append(pg.Frames, [4]any{cutLabel(f.Label()), f.Kind, f.Place, f.Image})
	}
	return n
}

func (pg *page) tree(p *Profile, t *tree) pageTree {
	out := pageTree{Frame: []int{-1}, Parent: []int32{-1}, Cells: p.cells(t)}
	for _, n := range t.nodes[1:] {
		out.Frame = append(out.Frame, pg.frame(n.frame))
		out.Parent = append(out.Parent, n.parent)
	}
	return out
}

func (pg *page) narrowNote(t *tree, least float64, view string) {
	if t.leftOut == 0 {
		return
	}
	pg.notes = append(pg.notes, fmt.Sprintf("Graph of %s: %s below %.2g %% of the whole are drawn as “(narrow frames)”, at the ends of stacks that make up %s.",
		view, plural(int64(t.leftOut), "frame"), 100*least, percent(share(t.smallTotal(), pg.Total))))
}

func (pg *page) vanishedNotes(t *tree) {
	list := pg.profile.vanished(t)
	if len(list) == 0 {
		pg.notes = append(pg.notes, "No frame of the base has vanished.")
	}
	for i, g := range list {
		if i == 50 {
			pg.notes = append(pg.notes, fmt.Sprintf("and %d more.", len(list)-i))
			return
		}
		pg.notes = append(pg.notes, fmt.Sprintf("Vanished: %s, %s of the base, called by %s.", g.label, percent(g.share), g.parent))
	}
}
