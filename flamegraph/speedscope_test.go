package flamegraph

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// speedscopeFile has the fields that the format's schema knows and requires.
type speedscopeFile struct {
	Schema             string   `json:"$schema"`
	Exporter           string   `json:"exporter"`
	Name               string   `json:"name"`
	Comments           []string `json:"comments"` // ours
	ActiveProfileIndex int      `json:"activeProfileIndex"`
	Shared             struct {
		Frames []speedscopeFrame `json:"frames"`
	} `json:"shared"`
	Profiles []struct {
		Type       string  `json:"type"`
		Name       string  `json:"name"`
		Unit       string  `json:"unit"`
		StartValue int64   `json:"startValue"`
		EndValue   int64   `json:"endValue"`
		Samples    [][]int `json:"samples"`
		Weights    []int64 `json:"weights"`
	} `json:"profiles"`
}

func TestSpeedscopeSchema(t *testing.T) {
	for _, p := range []*Profile{load(t, "testdata/worker.folded"), difference(t), hostileProfile(t)} {
		var b bytes.Buffer
		if err := p.WriteSpeedscope(&b); err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(&b)
		d.DisallowUnknownFields()
		var f speedscopeFile
		if err := d.Decode(&f); err != nil {
			t.Fatal(err)
		}
		checkSpeedscope(t, f)
	}
}

func checkSpeedscope(t *testing.T, f speedscopeFile) {
	t.Helper()
	units := "none nanoseconds microseconds milliseconds seconds bytes"
	for _, p := range f.Profiles {
		sum := int64(0)
		for _, w := range p.Weights {
			sum += w
		}
		if p.Type != "sampled" || !strings.Contains(units, p.Unit) || sum != p.EndValue || len(p.Samples) != len(p.Weights) {
			t.Errorf("profile %s of %s: %d samples, %d weights that sum to %d, end %d", p.Type, p.Unit, len(p.Samples), len(p.Weights), sum, p.EndValue)
		}
		for _, ids := range p.Samples {
			for _, id := range ids {
				if id < 0 || id >= len(f.Shared.Frames) || f.Shared.Frames[id].Name == "" {
					t.Fatalf("sample of frame %d, which is none", id)
				}
			}
		}
	}
}

// TestSpeedscopeOpens shows files in speedscope's own page, from its npm
// package: what capture writes, and what flamegraph makes of folded text, of a
// pprof file as incidents have it, and of two.
func TestSpeedscopeOpens(t *testing.T) {
	release, err := filepath.Abs("ui/node_modules/speedscope/dist/release")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(release, "index.html")); err != nil {
		fetchPage(t)
	}
	browser := openBrowser(t)
	dir := t.TempDir()
	packed := filepath.Join(dir, "profile.pb.gz")
	write(t, packed, agentProfile().Write)
	captured := filepath.Join(dir, "capture.speedscope.json")
	p, err := FromPprof(agentProfile(), "worker 0", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.WriteFile(captured); err != nil {
		t.Fatal(err)
	}
	const rows = `[...document.querySelectorAll("tbody tr, table tr")].map(r => r.innerText.replace(/\s+/g, " ").trim())`
	for _, c := range []struct {
		name, in, base string
		title          string
		rows           []string // of the sandwich view: total, self, name
	}{
		{"folded", "testdata/worker.folded", "", "worker.folded", []string{"410 (32%) 410 (32%) gcd wrr.lua:12"}},
		{"pprof", packed, "", "profile.pb.gz", []string{"120.00ms (67%) 90.00ms (50%) gcd wrr.lua:12", "30.00ms (17%) 30.00ms (17%) math.floor"}},
		{"difference", "testdata/worker.folded", "testdata/base.folded", "worker.folded", []string{"410 (32%) 410 (32%) gcd wrr.lua:12"}},
		{"capture", captured, "", "worker 0", []string{"120.00ms (67%) 90.00ms (50%) gcd wrr.lua:12"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := c.in
			if c.name != "capture" {
				file = filepath.Join(dir, c.name+".speedscope.json")
				if _, err := Convert(c.in, c.base, file); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script := writeTemp(t, "p.js", func(b *bytes.Buffer) error {
				b.WriteString(`speedscope.loadFileFromBase64("x.speedscope.json", "` + base64.StdEncoding.EncodeToString(data) + `")`)
				return nil
			})
			b := newTab(t, browser, "file://")
			b.do(chromedp.Navigate("file://" + release + "/index.html#view=sandwich&localProfilePath=" + strings.TrimPrefix(script, "/")))
			b.want(`document.title.includes("`+c.title+`")`, "true")
			for _, row := range c.rows {
				b.want(rows+`.includes("`+row+`") || document.body.innerText`, "true")
			}
		})
	}
}

// write makes a file.
func write(t *testing.T, path string, content func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(content(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// fetchPage installs speedscope's package where everything must be tested;
// elsewhere the test is skipped.
func fetchPage(t *testing.T) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") != "1" {
		t.Skip("speedscope's page: not found; run npm ci in flamegraph/ui")
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = "ui"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("speedscope's page: %v\n%s", err, out)
	}
}
