package incident

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func testStore(t *testing.T, keep Retention) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "incidents"), keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var svg = []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="300"><rect width="100" height="10" fill="#c33"/></svg>`)

func someFiles() map[string][]byte {
	return map[string][]byte{FlameFile: svg, ProfileFile: []byte("profile")}
}

// numbered returns an incident with an id of its own, n minutes later.
func numbered(n int) *Incident {
	inc := gcdNaN()
	inc.Began = began.Add(time.Duration(n) * time.Minute)
	end := inc.Began.Add(time.Second)
	inc.Ended = &end
	inc.ID = NewID(inc.Began, strings.NewReader(fmt.Sprintf("%03d", n%1000)))
	return inc
}

func TestCreateLoadUpdate(t *testing.T) {
	s := testStore(t, Retention{})
	inc := gcdNaN()
	inc.Ended, inc.Outcome = nil, ""
	if err := s.Create(inc, someFiles()); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(inc, nil); !errors.Is(err, ErrExists) {
		t.Errorf("second Create: %v", err)
	}
	end := inc.Began.Add(time.Second)
	inc.Ended, inc.Outcome = &end, Recovered
	if err := s.Update(inc, map[string][]byte{DiffFile: svg}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(inc.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Story != Story(inc) || got.Open() || *got.Timeline.Evicted != 431 || got.Evidence.Values[0].Text != "nan" {
		t.Errorf("loaded: %+v", got)
	}
	var names []string
	files, err := s.Files(inc.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "diff.svg flamegraph.svg incident.json profile.pb.gz report.html" {
		t.Errorf("files: %s", got)
	}
	report, err := os.ReadFile(filepath.Join(s.Path(inc.ID), ReportFile))
	if err != nil || strings.Count(string(report), "<iframe") != 2 {
		t.Errorf("the report shows %d pictures, not the old and the new one: %v", strings.Count(string(report), "<iframe"), err)
	}
	leftovers(t, s.Dir(), 0)
}

// leftovers fails unless there are n temporary entries anywhere below dir.
func leftovers(t *testing.T, dir string, n int) {
	t.Helper()
	found := 0
	if err := filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error {
		if strings.HasPrefix(filepath.Base(p), tempPrefix) {
			found++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if found != n {
		t.Errorf("%d temporary entries in %s, want %d", found, dir, n)
	}
}

func TestModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	s := testStore(t, Retention{})
	inc := gcdNaN()
	if err := s.Create(inc, someFiles()); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(inc, nil); err != nil {
		t.Fatal(err)
	}
	if err := filepath.Walk(s.Dir(), func(p string, fi os.FileInfo, err error) error {
		want := os.FileMode(0o640)
		if fi.IsDir() {
			want = 0o750
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", p, fi.Mode().Perm(), want)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestNoWayOut(t *testing.T) {
	s := testStore(t, Retention{})
	inc := gcdNaN()
	if err := s.Create(inc, someFiles()); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(s.Path(inc.ID), "link.svg")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("incident.json", filepath.Join(s.Path(inc.ID), "inner.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(s.Path(inc.ID), "pipe.svg"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.svg", "inner.json", "pipe.svg", "../" + inc.ID + "/incident.json", "", ".", "..", ".lock", "a/b", "x\x00y", strings.Repeat("a", 300)} {
		if f, err := s.File(inc.ID, name); err == nil {
			_ = f.Close()
			t.Errorf("file %q can be opened", name)
		}
	}
	for _, id := range []string{"", ".", "..", "../etc", inc.ID + "/", inc.ID + "/..", "/etc", strings.ToUpper(inc.ID), inc.ID + "\x00", "20261330T015749.123Z-0badc0"} {
		if _, err := s.Load(id); !errors.Is(err, ErrBadID) {
			t.Errorf("Load(%q): %v", id, err)
		}
		if err := s.Export(id, io.Discard); !errors.Is(err, ErrBadID) {
			t.Errorf("Export(%q): %v", id, err)
		}
	}
	for _, name := range []string{"../x", "report.html", "incident.json", ".tmp-x", "a b"} {
		if err := s.Update(inc, map[string][]byte{name: nil}); !errors.Is(err, ErrBadFile) {
			t.Errorf("Update with file %q: %v", name, err)
		}
	}
}

func TestOneWriter(t *testing.T) {
	s := testStore(t, Retention{})
	if _, err := Open(s.Dir(), Retention{}); !errors.Is(err, ErrLocked) {
		t.Errorf("second writer: %v", err)
	}
	if err := s.Create(gcdNaN(), nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if list, err := r.List(Filter{}); err != nil || len(list) != 1 {
		t.Errorf("reader beside the writer: %v %v", list, err)
	}
	if err := r.Create(numbered(1), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("reader writes: %v", err)
	}
}

func TestList(t *testing.T) {
	s := testStore(t, Retention{})
	for i := range 5 {
		inc := numbered(i)
		if i == 3 {
			inc.Verdict = "blocked"
		}
		if err := s.Create(inc, nil); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(f Filter) string {
		list, err := s.List(f)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, sum := range list {
			b.WriteString(sum.Began.Format("4") + " ")
		}
		return b.String()
	}
	if got := ids(Filter{}); got != "1 0 59 58 57 " {
		t.Errorf("all: %s", got)
	}
	if got := ids(Filter{Limit: 2}); got != "1 0 " {
		t.Errorf("newest two: %s", got)
	}
	if got := ids(Filter{Verdict: "blocked"}); got != "0 " {
		t.Errorf("blocked: %s", got)
	}
	if got := ids(Filter{Proxy: "elsewhere"}); got != "" {
		t.Errorf("elsewhere: %s", got)
	}
}

func TestListShowsWhatCannotBeRead(t *testing.T) {
	s := testStore(t, Retention{})
	for i := range 3 {
		if err := s.Create(numbered(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	breakJSON(t, s, numbered(0).ID)
	other, err := Encode(numbered(7))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Path(numbered(1).ID), JSONFile), other, 0o640); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	list, err := r.List(Filter{})
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if list[0].Error != "" || !strings.Contains(list[1].Error, "speaks of") || !strings.Contains(list[2].Error, "incident.json") {
		t.Errorf("list: %+v", list)
	}
	if list[2].Began.IsZero() || !strings.Contains(list[2].Story, "cannot be read") {
		t.Errorf("broken: %+v", list[2])
	}
}

func TestListSeesForeignChange(t *testing.T) {
	s := testStore(t, Retention{})
	inc := gcdNaN()
	inc.Ended, inc.Outcome = nil, ""
	if err := s.Create(inc, nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if list, err := r.List(Filter{}); err != nil || list[0].Outcome != "" {
		t.Fatal(list, err)
	}
	inc.Outcome = StuckAgain
	if err := s.Update(inc, nil); err != nil {
		t.Fatal(err)
	}
	if list, err := r.List(Filter{}); err != nil || list[0].Outcome != StuckAgain {
		t.Errorf("the reader shows what was: %+v %v", list, err)
	}
}

func TestExport(t *testing.T) {
	s := testStore(t, Retention{})
	inc := gcdNaN()
	if err := s.Create(inc, someFiles()); err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := errors.Join(s.Export(inc.ID, &a), s.Export(inc.ID, &b)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two exports differ")
	}
	z, err := gzip.NewReader(&a)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, inc.ID+"/"))
	}
	if got := strings.Join(names, " "); got != "flamegraph.svg incident.json profile.pb.gz report.html" {
		t.Errorf("archive holds %s", got)
	}
	if err := s.Export(numbered(9).ID, io.Discard); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown incident: %v", err)
	}
}
