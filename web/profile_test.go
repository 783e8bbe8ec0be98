package web

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// testProfile is a small profile whose function lies in a file that must never
// be opened.
func testProfile(t *testing.T) []byte {
	t.Helper()
	f := &profile.Function{ID: 1, Name: "gcd", Filename: "/etc/passwd"}
	m := &profile.Mapping{ID: 1, File: "/bin/sh", Start: 0x1000, Limit: 0x2000, HasFunctions: true}
	l := &profile.Location{ID: 1, Mapping: m, Address: 0x1100, Line: []profile.Line{{Function: f, Line: 1}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}},
		Sample:     []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{310}}},
		Location:   []*profile.Location{l}, Function: []*profile.Function{f}, Mapping: []*profile.Mapping{m},
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpackIsBounded(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, maxProfile+1)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(&b); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("a bomb: %v", err)
	}
	for _, text := range []string{"", "\x1f\x8b", "\x1f\x8b\x08cut", "plain"} {
		if data, err := unpack(strings.NewReader(text)); err == nil && text != string(data) {
			t.Errorf("%q: %q", text, data)
		}
	}
}

func TestPprofOfRubbish(t *testing.T) {
	if _, err := buildPprof(strings.NewReader("rubbish")); err == nil {
		t.Error("rubbish became a page")
	}
}

func TestPprofKeepsFew(t *testing.T) {
	s, _ := server(t)
	for range pprofKept + 3 {
		if _, err := s.pprof.get(testID, "profile.pb.gz"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.pprof.pages); n != 1 {
		t.Errorf("%d pages for one profile", n)
	}
}
