package flamegraph

import (
	"bytes"
	"io"
	"os"
	"testing"
)

// FuzzRead feeds any bytes to the reader. What it accepts must come out in
// every format, and the text formats must keep the sums.
func FuzzRead(f *testing.F) {
	for _, file := range []string{"testdata/worker.folded", "testdata/diff.folded"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	var packed, plain bytes.Buffer
	if err := agentProfile().Write(&packed); err != nil {
		f.Fatal(err)
	}
	if err := agentProfile().WriteUncompressed(&plain); err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Bytes())
	f.Add(plain.Bytes())
	f.Add([]byte("a;b 1 2\n;; 3\n-1 -1\n\xff\x00 4\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(bytes.NewReader(data), "fuzz")
		if head := data[:min(len(data), 3)]; !looksLikeText(head) && head[0] != 0x1f {
			sameAsParsed(t, data)
		}
		if err != nil {
			return
		}
		checkFormats(t, p)
	})
}

func checkFormats(t *testing.T, p *Profile) {
	var text, packed, svg bytes.Buffer
	if err := p.WriteFolded(&text); err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(text.Bytes()), "again")
	if err != nil {
		t.Fatalf("folded read back: %v\n%q", err, text.String())
	}
	if again.Total() != p.Total() || again.BaseTotal() != p.BaseTotal() {
		t.Fatalf("folded read back: %d and %d, want %d and %d:\n%q", again.Total(), again.BaseTotal(), p.Total(), p.BaseTotal(), text.String())
	}
	if err := p.WritePprof(&packed); err != nil {
		t.Fatal(err)
	}
	if again, err = Read(&packed, "again"); err != nil || again.Total() != p.Total() {
		t.Fatalf("pprof read back: %v", err)
	}
	if _, err := WriteSVG(&svg, p, SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	elements(t, svg.Bytes())
	if _, err := WriteHTML(io.Discard, p, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteSpeedscope(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// FuzzClean: what comes out of clean is valid in XML and short.
func FuzzClean(f *testing.F) {
	for _, name := range hostileNames[:8] {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if len(got) > 8*maxText {
			t.Fatalf("%d bytes are left of %d", len(got), len(s))
		}
		if clean(got) != got && len(got) <= maxText {
			t.Fatalf("cleaning twice: %q, then %q", got, clean(got))
		}
		var b bytes.Buffer
		escape(&b, got)
		elements(t, []byte("<a b=\""+b.String()+"\">"+b.String()+"</a>"))
	})
}
