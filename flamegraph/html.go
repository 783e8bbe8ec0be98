package flamegraph

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"io"
	"strings"
)

//go:generate sh -c "cd ui && npm ci --ignore-scripts --no-audit --no-fund && npm run -s build"

//go:embed assets/page.js
var pageScript string

//go:embed assets/page.css
var pageStyle string

//go:embed assets/page.html
var pageFrame string

// HTMLOptions say what the page shows. The zero value is a good one.
type HTMLOptions struct {
	Title    string // default: the profile's name
	Subtitle string // default: type, total and time of the profile
	MaxNodes int    // boxes kept in each of the two trees; default 20,000
}

// WriteHTML writes one page that works offline: search, zoom, flame and
// icicle, callees and callers, table, label filters. All of its data, script
// and style are in it.
func WriteHTML(w io.Writer, p *Profile, o HTMLOptions) (Drawn, error) {
	o.Title = clean(cmp.Or(o.Title, p.Name, "flame graph"))
	o.Subtitle = clean(cmp.Or(o.Subtitle, p.subtitle()))
	page, drawn := newPage(p, cmp.Or(o.MaxNodes, 20000))
	data, err := json.Marshal(page) // escapes <, > and &
	if err != nil {
		return Drawn{}, err
	}
	out := newOutput(w)
	parts := map[string]string{
		"title": escaped(o.Title), "subtitle": escaped(o.Subtitle), "style": pageStyle, "script": pageScript,
		"legend": p.htmlLegend(), "notes": htmlNotes(page.notes), "data": string(data),
	}
	rest := pageFrame
	for {
		head, tail, found := strings.Cut(rest, "{{")
		out.text(head)
		if !found {
			return drawn, out.Flush()
		}
		name, after, _ := strings.Cut(tail, "}}")
		out.text(parts[name])
		rest = after
	}
}

func escaped(s string) string { return escaper.Replace(s) }

func htmlNotes(notes []string) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString("<p>" + escaped(n) + "</p>\n")
	}
	return b.String()
}

// htmlLegend lists the colours: of the kinds that occur, with the share of
// the time spent in each, or of changes.
func (p *Profile) htmlLegend() string {
	var b strings.Builder
	entry := func(color, text string) {
		b.WriteString(`<span><i class="dot" style="background:` + color + `"></i>` + escaped(text) + "</span>\n")
	}
	if p.diff {
		entry(changeColor(1), "larger share than in the base")
		entry(changeColor(0), "unchanged")
		entry(changeColor(-1), "smaller share")
		return b.String()
	}
	sums := p.self
	for _, k := range legendOrder {
		if v := sums[k]; v > 0 {
			entry(kindColors[k], kindNames[k]+" "+percent(share(v, p.total)))
		}
	}
	return b.String()
}
