package incident

import (
	"testing"
	"time"
)

func TestRetainByCount(t *testing.T) {
	s := testStore(t, Retention{Count: 2})
	for i := range 5 {
		inc := numbered(i)
		if i == 0 {
			inc.Ended = nil // open: must stay, though it is the oldest
		}
		if err := s.Create(inc, nil); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := s.Retain(began.Add(time.Hour))
	if err != nil || len(removed) != 3 || removed[0] != numbered(1).ID {
		t.Errorf("removed %v: %v", removed, err)
	}
	left, err := s.List(Filter{})
	if err != nil || len(left) != 2 || left[0].ID != numbered(4).ID || left[1].ID != numbered(0).ID {
		t.Errorf("left %v: %v", left, err)
	}
	// A day later nobody can still be at work on it.
	if err := s.Create(numbered(5), nil); err != nil {
		t.Fatal(err)
	}
	removed, err = s.Retain(began.Add(25 * time.Hour))
	if err != nil || len(removed) != 1 || removed[0] != numbered(0).ID {
		t.Errorf("removed a day later %v: %v", removed, err)
	}
	leftovers(t, s.Dir(), 0)
}

func TestRetainByBytes(t *testing.T) {
	s := testStore(t, Retention{Bytes: 400_000})
	for i := range 4 {
		if err := s.Create(numbered(i), map[string][]byte{ProfileFile: make([]byte, 150_000)}); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := s.Retain(began.Add(time.Hour))
	if err != nil || len(removed) != 2 || removed[0] != numbered(0).ID {
		t.Errorf("removed %v: %v", removed, err)
	}
	// An incident that grows is counted again.
	if err := s.Update(numbered(3), map[string][]byte{BaselineFile: make([]byte, 150_000)}); err != nil {
		t.Fatal(err)
	}
	removed, err = s.Retain(began.Add(time.Hour))
	if err != nil || len(removed) != 1 || removed[0] != numbered(2).ID {
		t.Errorf("removed after an update %v: %v", removed, err)
	}
}

func TestRetainRemovesUnreadable(t *testing.T) {
	s := testStore(t, Retention{Count: 1})
	for i := range 2 {
		if err := s.Create(numbered(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	breakJSON(t, s, numbered(0).ID)
	if removed, err := s.Retain(began.Add(time.Hour)); err != nil || len(removed) != 1 {
		t.Errorf("removed %v: %v", removed, err)
	}
}

// After the clock was set back, what is new must not be dropped as old: what
// came from the future goes first.
func TestRetainAfterTheClockWasSetBack(t *testing.T) {
	s := testStore(t, Retention{Count: 2})
	for _, n := range []int{0, 600, 601, 5, 6} { // at minute 602 it was set to minute 5
		if err := s.Create(numbered(n), nil); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := s.Retain(began.Add(7 * time.Minute))
	if err != nil || len(removed) != 3 || removed[0] != numbered(600).ID || removed[1] != numbered(601).ID || removed[2] != numbered(0).ID {
		t.Errorf("removed %v: %v", removed, err)
	}
}
