package incident

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strconv"
)

// Picture is one SVG for the report, either as bytes, which are put into the
// page, or as an address to load it from. The zero value is no picture.
type Picture struct {
	SVG []byte
	URL string
}

// ReportOptions says how a report is shown. The zero value is the offline page
// without pictures.
type ReportOptions struct {
	Flame, Diff Picture
	Back        string     // address of the list of incidents; empty: no link
	Nonce       string     // of the style element, under a content security policy
	Files       []FileInfo // for the links at the end; relative to the page
	Links       []Link     // further links at the end
}

// Link is a named address, made by the caller and not by an incident.
type Link struct {
	Name string
	URL  string
}

//go:embed report.css
var reportCSS string

//go:embed report.html.tmpl
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"age": ms, "kb": kilobytes, "lines": diffLines, "utc": utc,
	"percent":     func(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) },
	"thousandths": func(f float64) int { return int(1000 * min(max(f, 0), 1)) },
}).Parse(reportText))

// maxPicture is the size up to which a picture is put into the page.
const maxPicture = 4 << 20

// WriteReport writes the report of inc as one HTML page that loads nothing
// from anywhere (unless a picture has a URL). Every text of inc is escaped; the
// pictures run in frames of their own that can reach nothing.
func WriteReport(w io.Writer, inc *Incident, o ReportOptions) error {
	c := prepared(inc)
	return reportTemplate.Execute(w, page{
		Incident: c, Options: o, CSS: template.CSS(reportCSS), // our own file
		Rows: waterfall(c), Tiles: tiles(c),
		Flame: frameOfPicture(o.Flame), Diff: frameOfPicture(o.Diff),
	})
}

// page is what the template sees.
type page struct {
	*Incident
	Options     ReportOptions
	CSS         template.CSS
	Rows        []row
	Tiles       []tile
	Flame, Diff *picture
}

// picture is a frame with an SVG inside.
type picture struct {
	Src    template.URL
	Height int
}

func frameOfPicture(p Picture) *picture {
	switch {
	case p.URL != "":
		return &picture{template.URL(p.URL), height(p.SVG)} // made by the caller, not by an incident
	case len(p.SVG) > 0 && len(p.SVG) <= maxPicture:
		data := base64.StdEncoding.EncodeToString(p.SVG)
		return &picture{template.URL("data:image/svg+xml;base64," + data), height(p.SVG)} // base64
	}
	return nil
}

var svgHeight = regexp.MustCompile(`<svg[^>]*\sheight="([0-9]{1,5})(?:\.[0-9]+)?(?:px)?"`)

// height returns the height in pixels that the SVG asks for, within reason.
func height(svg []byte) int {
	const usual = 480
	m := svgHeight.FindSubmatch(svg[:min(len(svg), 4096)])
	if m == nil {
		return usual
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return usual
	}
	return min(max(n+8, 160), 1400)
}

// report renders the offline page for the folder. Pictures come from files, or
// from the folder where they lie already.
func (s *Store) report(inc *Incident, files map[string][]byte) ([]byte, error) {
	picture := func(name string) Picture {
		if data, ok := files[name]; ok {
			return Picture{SVG: data}
		}
		return Picture{SVG: s.readFile(inc.ID, name, maxPicture)}
	}
	o := ReportOptions{Flame: picture(FlameFile), Diff: picture(DiffFile), Files: s.allFiles(inc.ID, files)}
	var b bytes.Buffer
	if err := WriteReport(&b, inc, o); err != nil {
		return nil, fmt.Errorf("report of %s: %s", inc.ID, err)
	}
	return b.Bytes(), nil
}
