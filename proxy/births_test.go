package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestTellsWhetherProcessesMayHaveStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loadavg")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b := birthsOf(file)
	defer b.close()
	for i, x := range []struct {
		text string
		none bool
	}{
		{"", false},
		{"0.75 1.10 1.26 2/312 4711\n", false},
		{"0.80 1.10 1.26 2/312 4711\n", true},
		{"0.80 1.10 1.26 2/312 4712\n", false},
		{"0.80 1.10 1.26 2/311 4712\n", false}, // one has ended
		{"0.80 1.10 1.26 2/311 4712\n", true},
	} {
		if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b.none() != x.none {
			t.Errorf("step %d: %q: none is %v", i, x.text, !x.none)
		}
	}
	if (&births{}).none() {
		t.Error("what can't be told was taken for nothing")
	}
}

func TestTheKernelTellsOfAStart(t *testing.T) {
	b := openBirths()
	defer b.close()
	for range 3 {
		b.none()
		if err := exec.Command("true").Run(); err != nil {
			t.Fatal(err)
		}
		if b.none() {
			t.Error("a process has run, and nobody was told")
		}
	}
}

// A scan can be left out only once nothing has started for some scans, and what
// has started meanwhile is found by the next one.
func TestFinderRestsOnlyWhereNothingStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loadavg")
	says := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says("0 0 0 2/312 4711\n")
	f := newFinder(t)
	f.births.close()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.births = birthsOf(file)
	scan := func() {
		if _, err := f.Scan(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range youngScans + 2 {
		if scan(); f.Rests() != (i > youngScans) {
			t.Errorf("after %d scans: rests is %v", i+1, f.Rests())
		}
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	says("0 0 0 2/313 4712\n")
	for range 2 { // asking does not make it old
		if f.Rests() {
			t.Error("rests although something has started")
		}
	}
	if scan(); f.known[cmd.Process.Pid] == nil {
		t.Error("the scan did not find what started while it was asked")
	}
	if f.Rests() {
		t.Error("rests although a process is young")
	}
}
