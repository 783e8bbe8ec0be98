package flamegraph

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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

// TestSpeedscopeOpens shows the file in speedscope's own page, from its npm
// package.
func TestSpeedscopeOpens(t *testing.T) {
	release, err := filepath.Abs("ui/node_modules/speedscope/dist/release")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(release, "index.html")); err != nil {
		fetchPage(t)
	}
	browser := openBrowser(t)
	script := writeTemp(t, "p.js", func(b *bytes.Buffer) error {
		var data bytes.Buffer
		if err := load(t, "testdata/worker.folded").WriteSpeedscope(&data); err != nil {
			return err
		}
		b.WriteString(`speedscope.loadFileFromBase64("worker.speedscope.json", "` + base64.StdEncoding.EncodeToString(data.Bytes()) + `")`)
		return nil
	})
	b := newTab(t, browser, "file://")
	b.do(chromedp.Navigate("file://" + release + "/index.html#view=sandwich&localProfilePath=" + strings.TrimPrefix(script, "/")))
	b.want(`document.body.innerText.includes("gcd wrr.lua:12")`, "true")
	b.want(`document.title.includes("worker.folded")`, "true")
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
