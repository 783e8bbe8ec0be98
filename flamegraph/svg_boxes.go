package flamegraph

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
)

// maxLabel is the longest label in a picture, in bytes.
const maxLabel = 400

// boxes draws the frames in the tree's order: parents first, which the script
// relies on.
func (s *svgWriter) boxes() {
	levels := s.t.height()
	fmt.Fprintf(s.out, `<svg class="frames" x="%d" y="%d" width="%d" height="%d">`+"\n",
		padding, headHeight, s.o.Width-2*padding, levels*rowHeight)
	scale := s.maxChange()
	looks := s.looks()
	for i := range s.t.nodes {
		n := &s.t.nodes[i]
		if i > 0 && (n.total == 0 || share(n.total, s.p.total) < s.least) {
			continue
		}
		row := levels - 1 - int(n.depth)
		if s.o.Icicle {
			row = int(n.depth)
		}
		s.box(n, looks, row*rowHeight, scale)
	}
	s.text("</svg>\n")
}

func (s *svgWriter) box(n *node, looks []string, y int, scale float64) {
	s.drawn++
	label, class := "all", "kr"
	if n.frame != root {
		label, class = cutLabel(s.p.frames[n.frame].Label()), looks[n.frame]
	}
	wide := 100 * share(n.total, s.p.total)
	if n.frame == root {
		wide = 100
	}
	x := 100 * share(n.start, s.p.total)
	fill := ""
	if s.p.diff {
		class, fill = "kd", changeColor(s.change(n)/scale)
	}
	s.text(`<g class="`, class, `" data-d="`, strconv.Itoa(int(n.depth)), `"><title>`)
	escape(s.out, label)
	s.text("\n")
	escape(s.out, s.detail(n))
	s.text("</title><rect")
	s.num("x", x, "%")
	s.num("y", float64(y), "")
	s.num("width", wide, "%")
	s.text(` height="`, strconv.Itoa(rowHeight), `"`)
	if fill != "" {
		s.text(` fill="`, fill, `"`)
	}
	s.text("/>")
	columns := int((wide/100*float64(s.o.Width-2*padding) - 6) / columnSize)
	if text := fit(label, columns); text != "" {
		s.text("<text")
		s.num("x", x, "%")
		s.text(` dx="4" y="`, strconv.Itoa(y+12), `">`)
		escape(s.out, text)
		s.text("</text>")
	}
	s.text("</g>\n")
}

// looks gives each frame its class: colour by kind, and one of three shades by
// name, so that neighbours differ and a function looks the same everywhere.
func (s *svgWriter) looks() []string {
	out := make([]string, len(s.p.frames))
	for i, f := range s.p.frames {
		h := fnv.New32a()
		h.Write([]byte(f.Name))
		out[i] = fmt.Sprintf("k%d s%d", f.Kind, h.Sum32()%3)
	}
	return out
}

// detail is the second line of a frame's tooltip.
func (s *svgWriter) detail(n *node) string {
	text := ""
	if n.frame != root {
		f := s.p.frames[n.frame]
		text = kindNames[f.Kind]
		if f.Image != "" {
			text += " in " + cutLabel(f.Image)
		}
		text += ", "
	}
	text += FormatValue(n.total, s.p.Unit) + ", " + percent(share(n.total, s.p.total))
	if n.self > 0 && n.self < n.total {
		text += ", itself " + percent(share(n.self, s.p.total))
	}
	if s.p.diff {
		text += fmt.Sprintf(", base %s, change %+.2f points", percent(share(n.base, s.p.baseSum)), 100*s.change(n))
	}
	return text
}

// change is the change of a box's share of the whole, -1 to 1.
func (s *svgWriter) change(n *node) float64 {
	return share(n.total, s.p.total) - share(n.base, s.p.baseSum)
}

func (s *svgWriter) maxChange() float64 {
	most := 0.0
	for i := range s.t.nodes {
		if n := &s.t.nodes[i]; i > 0 && n.total > 0 {
			most = max(most, math.Abs(s.change(n)))
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// changeColor is grey for no change, and goes to red for growth and to blue
// for decline; 1 and -1 are the strongest.
func changeColor(c float64) string {
	grey, red, blue := [3]float64{217, 220, 225}, [3]float64{232, 80, 70}, [3]float64{84, 143, 240}
	to, t := red, math.Sqrt(min(math.Abs(c), 1))
	if c < 0 {
		to = blue
	}
	if math.Abs(c) < 0.002 {
		t = 0
	}
	var out [3]int
	for i := range out {
		out[i] = int(math.Round(grey[i] + (to[i]-grey[i])*t))
	}
	return fmt.Sprintf("#%02x%02x%02x", out[0], out[1], out[2])
}

func cutLabel(s string) string {
	if len(s) <= maxLabel {
		return s
	}
	return cutBytes(s, maxLabel) + "…"
}
