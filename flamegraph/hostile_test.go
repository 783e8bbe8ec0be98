package flamegraph

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

var hostileNames = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `]]>`, `</style>`, `{{title}}`, "\x00\x01\x1b[31m", "\xff\xfe\xc3",
	"\u202Eevil", "\uFFFE", "a\nb\tc", `&lt;&#0;`, "日本語", strings.Repeat("z", 1<<20), "", " ", "<!--", "'", "\u2028",
}

func hostileProfile(t *testing.T) *Profile {
	t.Helper()
	b := newBuilder(hostileNames[0] + hostileNames[5])
	for i, name := range hostileNames {
		set := b.set([]Label{{clean(name), clean(hostileNames[len(hostileNames)-1-i])}})
		if err := b.add([]uint32{b.frame(Frame{Name: name, Place: name, Image: name, Kind: 3})}, set, int64(i+1), i%4 == 3); err != nil {
			t.Fatal(err)
		}
	}
	b.p.Account = readAccount(append([]string{"samples_taken=-3", "lost_=<b>"}, hostileNames...))
	b.p.Unit = "<u>"
	return b.finish()
}

// TestHostileSVG reads the picture back with a strict parser and looks for
// elements that only a name could have brought in.
func TestHostileSVG(t *testing.T) {
	var b bytes.Buffer
	if _, err := WriteSVG(&b, hostileProfile(t), SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 1<<20 {
		t.Errorf("picture of %d bytes: a long name is not cut", b.Len())
	}
	counts := elements(t, b.Bytes())
	if counts["script"] != 1 || counts["img"] != 0 || counts["style"] != 1 {
		t.Errorf("elements %v: a name became markup", counts)
	}
}

func elements(t *testing.T, doc []byte) map[string]int {
	t.Helper()
	if !utf8.Valid(doc) {
		t.Error("not UTF-8")
	}
	counts := make(map[string]int)
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
}

func TestHostileHTML(t *testing.T) {
	var b bytes.Buffer
	if _, err := WriteHTML(&b, hostileProfile(t), HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for tag, want := range map[string]int{"<script": 2, "</script>": 2, "<img": 0, "</style>": 1, "<!--": 0, "\x00": 0, "\u202E": 0} {
		if got := strings.Count(text, tag); got != want {
			t.Errorf("%q occurs %d times, want %d", tag, got, want)
		}
	}
}

func TestHostileSpeedscope(t *testing.T) {
	var b bytes.Buffer
	if err := hostileProfile(t).WriteSpeedscope(&b); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("not JSON")
	}
}

func TestHostileRoundTrips(t *testing.T) {
	p := hostileProfile(t)
	again := readText(t, folded(t, p))
	if again.Total() != p.Total() || again.BaseTotal() != p.BaseTotal() {
		t.Errorf("folded read back: %d and %d, want %d and %d", again.Total(), again.BaseTotal(), p.Total(), p.BaseTotal())
	}
	var b bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(&b, "x"); err != nil || again.Total() != p.Total() {
		t.Errorf("pprof read back: %v", err)
	}
}

func TestPicturesNeedNothingElse(t *testing.T) {
	var svg, page bytes.Buffer
	p := load(t, "testdata/worker.folded")
	if _, err := WriteSVG(&svg, p, SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteHTML(&page, p, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{" src=", " href=", "@import", "url(", " id="} {
		if strings.Contains(svg.String(), word) {
			t.Errorf("picture contains %q", word)
		}
	}
	for _, word := range []string{" src=", " href=", "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(page.String(), pageScript, ""), word) {
			t.Errorf("page contains %q", word)
		}
	}
}
