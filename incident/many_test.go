package incident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// With ten thousand incidents a list reads what it shows, and the directory
// only after a change.
func TestTenThousand(t *testing.T) {
	const many = 10_000
	dir := filepath.Join(t.TempDir(), "incidents")
	for n := range many {
		// An incident.json that nobody may need to read for the newest ones.
		if err := os.MkdirAll(filepath.Join(dir, NewID(began.Add(time.Duration(n)*time.Second), nil)), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Retention{Count: many})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	old := time.Now().Add(-time.Hour)
	settle := func() {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
		old = old.Add(time.Second)
	}
	newest := numbered(0)
	newest.ID = NewID(began.Add(many*time.Second), strings.NewReader("abc"))
	if err := s.Create(newest, nil); err != nil {
		t.Fatal(err)
	}
	settle()
	list, err := s.List(Filter{Limit: 1})
	if err != nil || len(list) != 1 || list[0].ID != newest.ID {
		t.Fatalf("%v %v", list, err)
	}
	if n := len(s.cache); n != 1 {
		t.Errorf("%d incidents were read to show one", n)
	}
	if n := len(s.known.ids); n != many+1 {
		t.Errorf("%d ids are remembered, want %d", n, many+1)
	}
	first := &s.known.ids[0]
	if _, err := s.List(Filter{Limit: 1}); err != nil || &s.known.ids[0] != first {
		t.Errorf("the directory was read again: %v", err)
	}
	// Somebody removes a folder by hand: a list must not show it any more.
	if err := os.RemoveAll(s.Path(newest.ID)); err != nil {
		t.Fatal(err)
	}
	for _, moment := range []string{"at once", "settled"} {
		if list, err := s.List(Filter{Limit: 1}); err != nil || len(list) > 0 && list[0].ID == newest.ID {
			t.Errorf("%s: %v %v", moment, list, err)
		}
		settle()
	}
	if err := s.Create(newest, nil); err != nil {
		t.Fatal(err)
	}
	removed, err := s.Retain(time.Now())
	if err != nil || len(removed) != 1 || removed[0] != NewID(began, nil) {
		t.Errorf("retention removed %d: %v", len(removed), err)
	}
	if n, err := s.Count(); err != nil || n != many {
		t.Errorf("%d are left: %v", n, err)
	}
}
