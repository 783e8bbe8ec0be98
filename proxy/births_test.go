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
	b := births{file: file}
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
