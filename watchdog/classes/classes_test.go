package classes

import (
	"fmt"
	"testing"
	"time"
)

func TestTemplates(t *testing.T) {
	for path, want := range map[string]string{
		"/":                       "/",
		"/shop/cart/17":           "/shop/cart/*",
		"/shop/cart/17?x=1":       "/shop/cart/*",
		"/v1/users/12ab34cd/name": "/v1/users/*/name",
		"/u/123e4567-e89b-12d3-a456-426614174000": "/u/*",
		"/api/v2/health":               "/api/v2/health",
		"/img/logo2.png":               "/img/logo2.png",
		"/o/order-20261130":            "/o/*",
		"/facade/added":                "/facade/added",
		"/a/b/c/d/e/f/g/h/i/j/k/l/m/n": "/a/b/c/d/e/f/g/h/i/j/k/**",
	} {
		if got := Template(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestTableIsBoundedAndSorted(t *testing.T) {
	tab := New(3)
	for i := range 5 {
		tab.Add(Key{Route: fmt.Sprint(i)}, time.Duration(10-i)*time.Millisecond)
		tab.Add(Key{Route: "hot"}, time.Millisecond) // used again and again: stays
	}
	tab.Over(Key{Route: "hot"})
	got := tab.Top(10)
	if len(got) != 3 || got[0].Route != "3" || got[1].Route != "4" || got[2].Route != "hot" || got[2].CPU != 5*time.Millisecond || got[2].Over != 1 {
		t.Errorf("%+v", got)
	}
	if got := tab.Top(1); len(got) != 1 {
		t.Error(got)
	}
}

func TestBudgetIsToldOnce(t *testing.T) {
	var b Budget
	told := 0
	for range 20 {
		if used, over := b.Charge(1, 20*time.Millisecond, 100*time.Millisecond); over {
			told++
			if used != 120*time.Millisecond {
				t.Error(used)
			}
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	for i := range 10_000 {
		b.Charge(uint64(i), 1, 10)
	}
	if len(b.used) > requestsMax || len(b.ring) > requestsMax || len(b.told) > requestsMax {
		t.Error(len(b.used), len(b.ring), len(b.told))
	}
}

func TestOffencesOfAClass(t *testing.T) {
	var o Offences
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	k, other := Key{Route: "GET /report"}, Key{Route: "GET /"}
	for _, tt := range []struct {
		at   int
		key  Key
		want bool
	}{
		{1, k, false}, {2, other, false}, {30, k, false}, {31, k, true}, // the third within a minute
		{32, k, false}, {33, k, false}, {34, k, false}, // told already
		{90, k, false}, {91, k, true}, // still going on a minute later
		{300, k, false}, {350, k, false}, {361, k, false}, {362, k, true}, // the first is forgotten
	} {
		if got := o.Add(tt.key, at(tt.at), time.Minute, 3); got != tt.want {
			t.Errorf("at %d s: %v", tt.at, got)
		}
	}
	for i := range 10_000 {
		o.Add(Key{Route: fmt.Sprint(i)}, at(400), time.Minute, 3)
	}
	if len(o.byKey) > offencesMax {
		t.Error(len(o.byKey))
	}
}
