package haproxyconf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) []Section {
	t.Helper()
	list, err := Parse(File{"h.cfg", []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSectionsAndDefaults(t *testing.T) {
	list := parse(t, `global
    maxconn 100 # all of it
defaults a
    timeout client 1s
    option redispatch
defaults b from a
    timeout client 2s
frontend f
    bind "*:80" # x
    no option redispatch
backend g from a
    server one 10.0.0.1:80 check
`)
	var names []string
	for _, s := range list {
		names = append(names, s.Kind+" "+s.Name)
	}
	if want := []string{"global ", "defaults a", "defaults b", "frontend f", "backend g"}; !slices.Equal(names, want) {
		t.Fatalf("%q, want %q", names, want)
	}
	f, g := list[3], list[4]
	if l, ok := f.Get("timeout", "client"); !ok || l.Words[2] != "2s" || l.Number != 7 {
		t.Errorf("f: timeout client %+v %v", l, ok)
	}
	if _, ok := f.Get("option", "redispatch"); ok {
		t.Error("f: no option redispatch was not seen")
	}
	if l, ok := g.Get("timeout", "client"); !ok || l.Words[2] != "1s" {
		t.Errorf("g: %+v %v", l, ok)
	}
	if _, ok := g.Get("option", "redispatch"); !ok || len(g.All("server")) != 1 || f.All("bind")[0].Words[1] != "*:80" {
		t.Errorf("g: %+v; f: %+v", g, f.Lines)
	}
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		`log "a b" c\ d '#' # no`: {"log", "a b", "c d", "#"},
		"\t \r\n":                 nil,
		`x ""`:                    {"x", ""},
		`x "open`:                 {"x", "open"},
	} {
		if got := split(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestBounds(t *testing.T) {
	if _, err := Parse(File{"x", []byte(strings.Repeat("a\n", maxLines+1))}); err == nil {
		t.Error("there is no bound of lines")
	}
	if _, err := Parse(File{"x", make([]byte, maxBytes)}, File{"y", []byte("x")}); err == nil {
		t.Error("there is no bound of bytes")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("global\n maxconn 1\ndefaults\n mode http\nlisten x from\n")
	f.Add("no\nbackend 'a\nno option")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(File{"f", []byte(text)})
		if err != nil {
			return
		}
		for _, s := range list {
			_, _ = s.Get("option", "redispatch")
			_ = fmt.Sprint(s.All("server"))
		}
	})
}
