package goroutines

import (
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"testing"
)

//go:noinline
func waitsForever(stop chan struct{}) { <-stop }

func TestReadsARealEndpoint(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	for range 300 {
		go waitsForever(stop)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	s := httptest.NewServer(mux)
	defer s.Close()
	groups, err := Fetch(t.Context(), s.URL+"/debug/pprof/")
	if err != nil || len(groups) == 0 {
		t.Fatal(groups, err)
	}
	if got := groups[0]; got.Count != 300 || !strings.Contains(got.Text(), "goroutines.waitsForever (goroutines_test.go:1") {
		t.Errorf("%s", got.Text())
	}
	if _, err := Fetch(t.Context(), s.URL+"/nothing"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

func TestBadProfiles(t *testing.T) {
	for _, text := range []string{"", "<html>", "heap profile: 1"} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("goroutine profile: total 3\n2 @ 0x1 0x2\n#\t0x1\tmain.f+0x2c\t/src/main.go:12\n\n1 @ 0x3\n")
	f.Fuzz(func(t *testing.T, text string) {
		groups, _ := Parse(strings.NewReader(text))
		for _, g := range groups {
			if g.Count <= 0 || g.Text() == "" {
				t.Errorf("%+v", g)
			}
		}
	})
}
