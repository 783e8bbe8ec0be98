package incident

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

func TestGoldenReport(t *testing.T) {
	var b bytes.Buffer
	o := ReportOptions{Flame: Picture{SVG: svg}, Files: []FileInfo{{JSONFile, 4088}, {ProfileFile, 20_000}}}
	if err := WriteReport(&b, gcdNaN(), o); err != nil {
		t.Fatal(err)
	}
	golden(t, "gcd-nan.html", b.Bytes())
}

// Offline means that nothing in the page asks for anything.
func TestReportLoadsNothing(t *testing.T) {
	var b bytes.Buffer
	if err := WriteReport(&b, gcdNaN(), ReportOptions{Flame: Picture{SVG: svg}}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"http:", "https:", `src="/`, "@import", "url(", "<link", "<script"} {
		if strings.Contains(b.String(), s) {
			t.Errorf("the page contains %q", s)
		}
	}
}

const nasty = `"'><script>document.title="owned"</script><img src=x onerror="document.title='owned'">` + "\x00\x1b[31m\u202e\xff</style></title>javascript:alert(1)"

// hostile is an incident in which a worker chose every text.
func hostile() *Incident {
	inc := gcdNaN()
	inc.Origin, inc.Proxy, inc.Kind, inc.Mode, inc.Verdict, inc.Reason, inc.Follows = nasty, nasty, nasty, nasty, nasty, nasty, nasty
	inc.Outcome = Outcome(nasty)
	inc.Events = []Event{{inc.Began, nasty, nasty}}
	inc.Actions = []Action{{1, nasty, nasty, nasty, nasty}}
	inc.Rails, inc.Log = []string{nasty}, []string{nasty}
	inc.Change = &Change{nasty, nasty, nasty, "+" + nasty + "\n-" + nasty, nasty}
	inc.Blocked = &Blocked{nasty, nasty, nasty}
	inc.Lock = &Lock{Zone: nasty, Verdict: nasty}
	inc.Samples.Lost = map[string]int64{nasty: 1}
	inc.Evidence = Evidence{Request: nasty, Host: nasty, Phase: nasty, Upstream: nasty, Version: nasty, Digest: nasty, Peer: nasty}
	v := []stack.Value{{Name: nasty, Type: nasty, Text: nasty, Argument: true}}
	frames := []stack.Frame{{Kind: stack.Lua, Function: nasty, File: nasty, Line: 1, Values: v}, {Kind: stack.Lua, Function: nasty, Values: v}}
	inc.Evidence.SetStack(stack.Stack{Frames: frames}, 0)
	return inc
}

func TestHostileReport(t *testing.T) {
	var b bytes.Buffer
	if err := WriteReport(&b, hostile(), ReportOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"<script", "<img", "onerror=\"", "\x1b", "\xff"} {
		if strings.Contains(b.String(), s) {
			t.Errorf("the page contains %q", s)
		}
	}
	if n := strings.Count(b.String(), "</style>"); n != 1 {
		t.Errorf("%d ends of the style", n)
	}
}

// In a real browser: no script of the page runs, but those of the pictures do,
// and they cannot reach the page.
func TestReportInBrowser(t *testing.T) {
	evil := []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="100" height="200"><text>x</text><script>` +
		`document.querySelector("text").textContent="ran"; try { parent.document.title="owned" } catch (e) {}</script></svg>`)
	var b bytes.Buffer
	if err := WriteReport(&b, hostile(), ReportOptions{Flame: Picture{SVG: evil}}); err != nil {
		t.Fatal(err)
	}
	dom := browse(t, b.Bytes())
	if !strings.Contains(dom, `<p class="story">`) || strings.Contains(dom, "<title>owned") {
		t.Errorf("the page came out as %.2000s", dom)
	}
}

// browse loads a page from a file in headless Chromium and returns its DOM.
func browse(t *testing.T, page []byte) string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=2000", "--dump-dom", "file://"+file)
	c.WaitDelay = 30 * time.Second
	out, err := c.Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(out)
}

func TestPictureSize(t *testing.T) {
	for text, want := range map[string]int{
		`<svg width="9" height="300">`: 308, `<svg>`: 480, `<svg height="9">`: 160, `<svg height="99999">`: 1400,
		`<svg height="999999999999">`: 480, `<svg viewBox="0 0 1 1" height="200.5px">`: 208,
	} {
		if got := height([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestWaterfall(t *testing.T) {
	inc := gcdNaN()
	rows := waterfall(inc)
	if len(rows) != 6 || rows[5].X+rows[5].W != 1000 || rows[1].Before != "+204 ms" {
		t.Errorf("%+v", rows)
	}
	inc.Timeline = Timeline{Suspected: i64(-1 << 63), Confirmed: i64(5), Recovered: i64(-3)}
	for _, r := range waterfall(inc) {
		if r.X < 0 || r.W < 0 || r.X+r.W > 1001 {
			t.Errorf("out of the picture: %+v", r)
		}
	}
}
