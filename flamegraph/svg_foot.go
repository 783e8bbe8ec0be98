package flamegraph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// footer says what the picture does not show.
func (s *svgWriter) footer() []string {
	lines := []string{s.p.Account.Sentence()}
	if len(s.p.stacks) == 0 {
		lines = append(lines, "The profile holds no samples.")
	}
	if n := s.t.leftOut; n > 0 {
		lines = append(lines, fmt.Sprintf("Not drawn: %s narrower than %.3g px, at the ends of stacks that make up %s of the whole.",
			plural(int64(n), "frame"), s.least*float64(s.o.Width-2*padding), percent(share(s.t.smallTotal(), s.p.total))))
	}
	if notes := s.p.Account.notes(); notes != "" {
		lines = append(lines, wrap(notes, s.o.Width/6, 4)...)
	}
	if s.p.diff {
		lines = append(lines, s.vanished()...)
	}
	return lines
}

// wrap breaks a line at spaces into at most so many lines.
func wrap(s string, columns, lines int) []string {
	var out []string
	for s != "" && len(out) < lines {
		part := trimColumns(s, columns)
		if len(part) < len(s) {
			if i := strings.LastIndexByte(part, ' '); i > 0 {
				part = part[:i]
			}
			if len(out) == lines-1 {
				part += " …"
				out = append(out, part)
				break
			}
		}
		s = strings.TrimLeft(s[len(part):], " ·")
		out = append(out, strings.TrimRight(part, " ·"))
	}
	return out
}

// gone is a box of the base that has no samples any more.
type gone struct {
	label, parent string
	share         float64 // of the base
}

// vanished lists the outermost boxes of the base that are gone, largest first.
func (p *Profile) vanished(t *tree) []gone {
	var out []gone
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.parent < 0 || n.total > 0 || n.base == 0 {
			continue
		}
		if up := &t.nodes[n.parent]; up.total > 0 || up.frame == root {
			g := gone{label: cutLabel(p.frames[n.frame].Label()), parent: "all", share: share(n.base, p.baseSum)}
			if up.frame != root {
				g.parent = cutLabel(p.frames[up.frame].Label())
			}
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(x, y gone) int { return cmp.Compare(y.share, x.share) })
	return out
}

func (s *svgWriter) vanished() []string {
	list := s.p.vanished(s.t)
	if len(list) == 0 {
		return []string{"No frame of the base has vanished."}
	}
	lines := []string{fmt.Sprintf("Vanished since the base (%s, shares of the base):", plural(int64(len(list)), "frame"))}
	for i, g := range list {
		if i == 10 {
			return append(lines, fmt.Sprintf("    and %d more", len(list)-i))
		}
		lines = append(lines, fmt.Sprintf("    %s  %s, called by %s", percent(g.share), fit(g.label, 70), fit(g.parent, 60)))
	}
	return lines
}

func (s *svgWriter) footLines() {
	y := headHeight + rowHeight*s.t.height() + 14
	s.text(`<g class="foot">`)
	for _, line := range s.foot {
		y += footLine
		fmt.Fprintf(s.out, `<text x="10" y="%d" xml:space="preserve">`, y-4)
		escape(s.out, line)
		s.text("</text>\n")
	}
	s.text("</g>\n")
}
