package drill

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Nobody listens on the ports of a drill before its proxy does. Without
// holding them, drills that start together could be given the same row.
func TestRowIsHeld(t *testing.T) {
	r, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holdRow(r.first); err == nil {
		t.Errorf("the row from %d on was given twice", r.first)
	}
	if out := otherProcess(t, r.first); out != "held" {
		t.Errorf("to another process the row is %s, want held", out)
	}
	r.close()
	again, err := holdRow(r.first)
	if err != nil {
		t.Fatalf("a closed row can't be held: %v", err)
	}
	again.close()
}

// A lab holds its row until it is cleaned up, and gives it back if it can't be
// made.
func TestLabHoldsItsRow(t *testing.T) {
	sc, err := Find("idle")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLab(t.Context(), func(error) {}, sc, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out := otherProcess(t, l.vars.Port); out != "held" {
		t.Errorf("the row of a lab is %s, want held", out)
	}
	if err := l.cleanUp(); err != nil {
		t.Error(err)
	}
	if out := otherProcess(t, l.vars.Port); out != "free" {
		t.Errorf("the row of a lab that was cleaned up is %s, want free", out)
	}

	broken := *sc
	c := *sc.Case
	broken.Case, c.Config = &c, "missing.conf"
	before := rowsHeld(t)
	if _, err := newLab(t.Context(), func(error) {}, &broken, t.TempDir()); err == nil {
		t.Fatal("a lab without a configuration was made")
	}
	if after := rowsHeld(t); after > before {
		t.Errorf("a lab that could not be made keeps its row")
	}
}

// rowsHeld counts the rows that this process holds.
func rowsHeld(t *testing.T) int {
	t.Helper()
	names, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for line := range strings.Lines(string(names)) {
		if f := strings.Fields(line); strings.Contains(line, "@spinguard-drill-ports-") {
			inodes["socket:["+f[6]+"]"] = true
		}
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); inodes[to] {
			held++
		}
	}
	return held
}

// otherProcess tells how another process finds a row.
func otherProcess(t *testing.T, first int) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0], "-test.run", "^TestRowInOtherProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("SPINGUARD_DRILL_ROW=%d", first))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("other process: %v", err)
	}
	var word string
	_, _ = fmt.Sscan(string(out), &word)
	return word
}

// TestRowInOtherProcess is the other process.
func TestRowInOtherProcess(t *testing.T) {
	var first int
	if _, err := fmt.Sscan(os.Getenv("SPINGUARD_DRILL_ROW"), &first); err != nil {
		return
	}
	if r, err := holdRow(first); err != nil {
		fmt.Println("held")
	} else {
		r.close()
		fmt.Println("free")
	}
}
