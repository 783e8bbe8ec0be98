package incident

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkCreate writes the folder of an incident as a response does, with
// everything on the disk before the next step.
func BenchmarkCreate(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "incidents"), Retention{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	files := map[string][]byte{FlameFile: bytes.Repeat(svg, 200), ProfileFile: make([]byte, 20_000)}
	inc := gcdNaN()
	for n := 0; b.Loop(); n++ {
		inc.ID = NewID(began.Add(time.Duration(n)*time.Millisecond), strings.NewReader("abc"))
		if err := s.Create(inc, files); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList10000 lists ten thousand incidents: at first, again, and the
// newest hundred at first, as the page does.
func BenchmarkList10000(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "incidents"), Retention{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for n := range 10_000 {
		inc := gcdNaN()
		inc.ID = NewID(began.Add(time.Duration(n)*time.Millisecond), strings.NewReader("abc"))
		data, err := Encode(inc)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.root.Mkdir(inc.ID, dirMode); err != nil {
			b.Fatal(err)
		}
		if err := s.root.WriteFile(inc.ID+"/"+JSONFile, data, fileMode); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		cold  bool
		limit int
	}{{"first", true, 0}, {"again", false, 0}, {"page", true, 100}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if c.cold {
					s.cache = map[string]cached{}
				}
				list, err := s.List(Filter{Limit: c.limit})
				if err != nil || len(list) == 0 {
					b.Fatal(fmt.Sprint(len(list), err))
				}
			}
		})
	}
}
