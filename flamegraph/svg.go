package flamegraph

import (
	"cmp"
	_ "embed"
	"io"
	"strconv"
)

//go:embed assets/svg.js
var svgScript string

//go:embed assets/svg.css
var svgStyle string

// SVGOptions say how a picture is drawn. The zero value is a good one.
type SVGOptions struct {
	Title     string  // default: the profile's name
	Subtitle  string  // default: type, total and time of the profile
	Width     int     // in pixels where no script runs; default 1200
	MinWidth  float64 // narrower boxes are left out, in pixels; default 0.1
	MaxFrames int     // MinWidth is raised until so many fit; default 20,000
	Icicle    bool    // root at the top
	Callers   bool    // leaves become roots, and their callers lie on them
	Inline    bool    // for use inside HTML: no XML declaration
}

// Sizes of the picture in pixels.
const (
	rowHeight  = 17
	padding    = 10
	columnSize = 6.63 // width of a character of the frames' font
	headHeight = 92
	footLine   = 16
)

// WriteSVG draws the profile as one SVG that needs nothing else: no network,
// no other file. It has no ids, so several may stand inline in one page; each
// runs its own script. Read it as a still picture where scripts are off.
func WriteSVG(w io.Writer, p *Profile, o SVGOptions) (Drawn, error) {
	o.Width = cmp.Or(o.Width, 1200)
	o.MinWidth = cmp.Or(o.MinWidth, 0.1)
	o.MaxFrames = cmp.Or(o.MaxFrames, 20000)
	o.Title = clean(cmp.Or(o.Title, p.Name, "flame graph"))
	o.Subtitle = clean(cmp.Or(o.Subtitle, p.subtitle()))
	if o.Callers {
		p = p.callers()
	}
	t, least := p.growAtMost(o.MaxFrames, o.MinWidth/float64(o.Width-2*padding))
	s := svgWriter{out: newOutput(w), p: p, t: t, o: o, least: least}
	s.foot = s.footer()
	s.height = headHeight + rowHeight*t.height() + 14 + footLine*len(s.foot) + 8
	s.open()
	s.head()
	s.boxes()
	s.footLines()
	s.close()
	return Drawn{Frames: s.drawn, LeftOut: s.t.leftOut}, s.out.Flush()
}

type svgWriter struct {
	out    output
	p      *Profile
	t      *tree
	o      SVGOptions
	least  float64 // share of the total that a box must have
	height int
	drawn  int
	foot   []string
	buf    []byte
}

// text writes strings as they are.
func (s *svgWriter) text(parts ...string) { s.out.text(parts...) }

// num writes an attribute with a number.
func (s *svgWriter) num(name string, v float64, unit string) {
	s.buf = append(s.buf[:0], ' ')
	s.buf = append(s.buf, name...)
	s.buf = append(s.buf, '=', '"')
	s.buf = appendNumber(s.buf, v)
	s.buf = append(s.buf, unit...)
	s.buf = append(s.buf, '"')
	s.out.bytes(s.buf)
}

// appendNumber appends at most four decimals and no trailing zeros.
func appendNumber(b []byte, v float64) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, v, 'f', 4, 64)
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	if string(b[start:]) == "-0" {
		return append(b[:start], '0')
	}
	return b
}

func (s *svgWriter) open() {
	width, height := strconv.Itoa(s.o.Width), strconv.Itoa(s.height)
	if !s.o.Inline {
		s.text(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	}
	down := "0"
	if s.o.Icicle {
		down = "1"
	}
	s.text(`<svg xmlns="http://www.w3.org/2000/svg" class="sgf" width="`, width, `" height="`, height,
		`" viewBox="0 0 `, width, " ", height, `" data-down="`, down, `" role="group" aria-label="`)
	escape(s.out, s.o.Title)
	s.text("\">\n<style><![CDATA[\n", svgStyle, "]]></style>\n",
		`<rect class="bg" width="100%" height="100%"/>`, "\n")
}

func (s *svgWriter) close() {
	s.text("<script><![CDATA[\n", svgScript, "]]></script>\n</svg>\n")
}
