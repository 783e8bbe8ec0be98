package flamegraph

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(t *testing.T, path string) *Profile {
	t.Helper()
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func difference(t *testing.T) *Profile {
	t.Helper()
	d, err := Diff(load(t, "testdata/base.folded"), load(t, "testdata/worker.folded"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestGolden(t *testing.T) {
	agent, err := FromPprof(agentProfile(), "agent.pb.gz", "")
	if err != nil {
		t.Fatal(err)
	}
	svg := func(o SVGOptions) func(*bytes.Buffer, *Profile) error {
		return func(b *bytes.Buffer, p *Profile) error { _, err := WriteSVG(b, p, o); return err }
	}
	for _, c := range []struct {
		file  string
		p     *Profile
		write func(*bytes.Buffer, *Profile) error
	}{
		{"worker.svg", load(t, "testdata/worker.folded"), svg(SVGOptions{})},
		{"agent.svg", agent, svg(SVGOptions{Icicle: true, Inline: true, Width: 800})},
		{"callers.svg", agent, svg(SVGOptions{Callers: true})},
		{"diff.svg", difference(t), svg(SVGOptions{})},
		{"agent.folded", agent, func(b *bytes.Buffer, p *Profile) error { return p.WriteFolded(b) }},
		{"diff.folded", difference(t), func(b *bytes.Buffer, p *Profile) error { return p.WriteFolded(b) }},
		{"agent.speedscope.json", agent, func(b *bytes.Buffer, p *Profile) error { return p.WriteSpeedscope(b) }},
		{"diff.speedscope.json", difference(t), func(b *bytes.Buffer, p *Profile) error { return p.WriteSpeedscope(b) }},
	} {
		var b bytes.Buffer
		if err := c.write(&b, c.p); err != nil {
			t.Fatal(err)
		}
		// Style and script have files of their own; a golden file shows the rest.
		got := bytes.ReplaceAll(b.Bytes(), []byte(svgScript), []byte("script\n"))
		got = bytes.ReplaceAll(got, []byte(svgStyle), []byte("style\n"))
		golden(t, c.file, got)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what was written; compare, then run with -update:\n%s", path, got)
	}
}
