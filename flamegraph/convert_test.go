package flamegraph

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConvertEveryFormat(t *testing.T) {
	dir := t.TempDir()
	for _, ending := range Endings() {
		for _, base := range []string{"", "testdata/base.folded"} {
			out := filepath.Join(dir, "out"+ending)
			s, err := Convert("testdata/worker.folded", base, out)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(out)
			if err != nil || info.Size() != s.Bytes || info.Size() == 0 || "."+s.Format != ending || s.Total != 1275 {
				t.Errorf("%s: %+v, %v", out, s, err)
			}
		}
	}
	noLeftovers(t, dir, len(Endings()))
}

func TestConvertLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "out.svg")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := writeWhole(old, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("disk is full")
	})
	if err == nil || err.Error() != "disk is full" {
		t.Errorf("error %v", err)
	}
	if data, _ := os.ReadFile(old); string(data) != "old" {
		t.Errorf("file holds %q, want what it held before", data)
	}
	noLeftovers(t, dir, 1)
}

func noLeftovers(t *testing.T, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != want {
		t.Errorf("%d files in the folder, want %d: %v", len(entries), want, entries)
	}
}

func TestConvertErrors(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.pb.gz")
	if err := os.WriteFile(broken, []byte("\x1f\x8bnot gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "broken.pb")
	if err := os.WriteFile(binary, []byte("\x0a\x04\x08\x01\x10\x02\xff\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	noise := filepath.Join(dir, "noise.pb.gz")
	if err := os.WriteFile(noise, []byte("VM\x046\xbf\x82\xde no stack"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, out, want string }{
		{"testdata/worker.folded", dir + "/x.png", `unknown ending; use one of .folded .html .pb.gz .speedscope.json .svg`},
		{"testdata/worker.folded", dir + "/.svg", "unknown ending"},
		{"testdata/none.folded", dir + "/x.svg", "no such file"},
		{broken, dir + "/x.svg", "broken.pb.gz: "},
		{binary, dir + "/x.svg", "broken.pb: neither pprof nor folded text"},
		{"testdata/worker.folded", dir + "/none/x.svg", `output "` + dir + `/none/x.svg": no such file`},
		{noise, dir + "/x.svg", "noise.pb.gz: line 1: this is no text: neither pprof nor folded stacks"},
	} {
		if _, err := Convert(c.in, "", c.out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: error %v, want %q", c.in, c.out, err, c.want)
		}
	}
	noLeftovers(t, dir, 3)
}

func TestEmptyProfile(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.folded")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ending := range Endings() {
		if _, err := Convert(empty, "", filepath.Join(dir, "out"+ending)); err != nil {
			t.Errorf("%s: %v", ending, err)
		}
		if _, err := Convert(empty, "testdata/base.folded", filepath.Join(dir, "out"+ending)); err != nil {
			t.Errorf("%s against a base: %v", ending, err)
		}
	}
}

// TestPprofStaysWhole: from pprof to pprof nothing is lost that a picture does
// not need, and a difference is one to pprof as well.
func TestPprofStaysWhole(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pb.gz"), filepath.Join(dir, "out.pb.gz")
	p := agentProfile()
	p.Mapping[0].BuildID = "abcd"
	f, err := os.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err := Convert(in, "", out); err != nil || s.Total != 180e6 || s.Format != "pb.gz" {
		t.Fatalf("%+v, %v", s, err)
	}
	want, err := loadPprof(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := loadPprof(out)
	if err != nil || got.String() != want.String() || got.Mapping[0].BuildID != "abcd" {
		t.Errorf("%v: written\n%v\nwant\n%v", err, got, want)
	}
	if s, err := Convert(in, in, out); err != nil || s.Total != s.BaseTotal || s.Total != 180e6 {
		t.Errorf("difference to itself: %+v, %v", s, err)
	}
	if d := load(t, out); !d.Differential() || d.Account.Taken != 20 {
		t.Errorf("difference read back: %+v", d.Account)
	}
}
