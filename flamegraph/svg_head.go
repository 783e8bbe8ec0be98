package flamegraph

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spinguard/spinguard/profiler/stack"
)

// kindNames are the words of the legend, by kind.
var kindNames = map[stack.Kind]string{
	stack.Unknown: "unknown", stack.Native: "C / native", stack.Kernel: "kernel", stack.Lua: "Lua",
	stack.Trace: "Lua JIT trace", stack.Builtin: "Lua built-in", stack.VM: "Lua VM", stack.PCRE: "PCRE JIT",
}

// kindColors are the colours of the kinds, the same in svg.css and color.js.
var kindColors = map[stack.Kind]string{
	stack.Unknown: "#b4b8bf", stack.Native: "#f3b95f", stack.Kernel: "#ee8a6b", stack.Lua: "#6cb2ee",
	stack.Trace: "#ab98f0", stack.Builtin: "#5ec7b5", stack.VM: "#e59ac9", stack.PCRE: "#b3c65a",
}

// legendOrder lists Lua first: it is what people look for.
var legendOrder = []stack.Kind{
	stack.Lua, stack.Trace, stack.Builtin, stack.VM, stack.PCRE, stack.Native, stack.Kernel, stack.Unknown,
}

// subtitle says what the profile is: "cpu, 1.23 s in 45 stacks, 2026-… for 30s".
func (p *Profile) subtitle() string {
	s := FormatValue(p.total, p.Unit) + " in " + plural(int64(p.distinct()), "distinct stack")
	if p.Unit != "count" {
		s = p.Type + ": " + s
	}
	if p.diff {
		s += ", compared with a base of " + FormatValue(p.baseSum, p.Unit)
	}
	if !p.Start.IsZero() {
		s += ", from " + p.Start.Format(time.RFC3339)
	}
	if p.Duration > 0 {
		s += " for " + p.Duration.Round(time.Millisecond).String()
		if p.Type == "cpu" && p.Unit == "nanoseconds" {
			s += fmt.Sprintf(", %.2f cores on average", share(p.total, p.Duration.Nanoseconds()))
		}
	}
	return s
}

func (p *Profile) distinct() int {
	n := 0
	p.eachStack(func([]uint32, int64, int64) { n++ })
	return n
}

func (s *svgWriter) head() {
	s.text(`<text class="title" x="10" y="26">`)
	escape(s.out, fit(s.o.Title, (s.o.Width-420)/9))
	s.text("</text>\n", `<text class="muted" x="10" y="45">`)
	escape(s.out, s.o.Subtitle)
	s.text("</text>\n")
	s.legend()
	s.text(`<text class="info" x="10" y="84"><tspan class="help">Click a frame to zoom. Keys: / search, Esc back, 0 reset, arrows and Enter move and zoom.</tspan></text>`, "\n")
	s.text(`<text class="match" x="`, strconv.Itoa(s.o.Width-padding), `" y="66"></text>`, "\n")
	s.text(`<foreignObject class="ctl" x="`, strconv.Itoa(s.o.Width-padding-390), `" y="8" width="390" height="30">`,
		`<div xmlns="http://www.w3.org/1999/xhtml" class="bar"><input type="search" placeholder="Search: text or regex" aria-label="Search"/>`,
		`<button type="button" title="Back (Esc)">Back</button><button type="button" title="Whole graph (0)">Reset</button></div></foreignObject>`, "\n")
}

// legend shows each kind that occurs, with the share of the time spent in it.
func (s *svgWriter) legend() {
	s.text(`<g class="legend">`)
	x := padding
	entry := func(style, text string) {
		fmt.Fprintf(s.out, `<rect %s x="%d" y="56" width="12" height="12"/><text class="muted" x="%d" y="66">`, style, x, x+17)
		escape(s.out, text)
		s.text("</text>")
		x += 17 + 13*utf8.RuneCountInString(text)/2 + 18
	}
	if s.p.diff {
		for _, e := range []struct {
			change float64
			text   string
		}{{1, "larger share than in the base"}, {0, "unchanged"}, {-1, "smaller share"}} {
			entry(`fill="`+changeColor(e.change)+`"`, e.text)
		}
	} else {
		sums := s.p.self
		for _, k := range legendOrder {
			if v := sums[k]; v > 0 {
				entry(fmt.Sprintf(`class="k%d"`, k), kindNames[k]+" "+percent(share(v, s.p.total)))
			}
		}
	}
	s.text("</g>\n")
}

// escaper makes text safe in XML and HTML, in content and in quoted
// attributes. clean has seen to the characters that XML forbids.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

func escape(w io.Writer, s string) { _, _ = escaper.WriteString(w, s) }
