package drill

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
)

func TestHasPlace(t *testing.T) {
	for _, tt := range []struct {
		text, part string
		want       bool
	}{
		{"gcd (wrr.lua:12)", "wrr.lua:12", true},
		{"gcd (wrr.lua:12)", "wrr.lua:1", false},
		{"gcd (wrr.lua:12, wrr.lua:1)", "wrr.lua:1", true},
		{"task_run_applet (haproxy)", "task_run_applet", true},
		{"gcd2", "gcd", true},
		{"", "gcd", false},
		{"any", "", true},
	} {
		if got := hasPlace(tt.text, tt.part); got != tt.want {
			t.Errorf("hasPlace(%q, %q) = %v", tt.text, tt.part, got)
		}
	}
}

func TestFrameShares(t *testing.T) {
	fn := &profile.Function{ID: 1, Name: "gcd", Filename: "/x/wrr.lua"}
	a := &profile.Location{ID: 1, Line: []profile.Line{{Function: fn, Line: 12}}}
	b := &profile.Location{ID: 2, Line: []profile.Line{{Function: fn, Line: 11}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}},
		Sample: []*profile.Sample{
			{Location: []*profile.Location{a, b}, Value: []int64{3}}, {Location: []*profile.Location{b, b}, Value: []int64{1}},
		},
		Location: []*profile.Location{a, b}, Function: []*profile.Function{fn},
	}
	dir := t.TempDir()
	var gz bytes.Buffer
	if err := p.Write(&gz); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "profile.pb.gz"), gz.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := frameShares(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got["gcd wrr.lua:12"] != 0.75 || got["gcd wrr.lua:11"] != 1 {
		t.Errorf("shares %v", got)
	}
	if !inProfile(got, "wrr.lua:12") || inProfile(got, "wrr.lua:13") {
		t.Error("wrong lines in the hot path")
	}
	if _, err := frameShares(t.TempDir()); !os.IsNotExist(err) {
		t.Errorf("no profile: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "profile.pb.gz"), []byte("rubbish"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := frameShares(dir); err == nil {
		t.Error("rubbish was accepted as a profile")
	}
}
