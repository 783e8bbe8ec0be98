package unwind

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func buildGo(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "gotarget")
	args := append([]string{"build", "-o", out}, flags...)
	cmd := exec.Command(need(t, "go"), append(args, "./testdata/gotarget")...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

// TestGoEveryInstruction single-steps the main goroutine of a Go program,
// which stays on its first thread.
func TestGoEveryInstruction(t *testing.T) {
	variants := []struct {
		name  string
		flags []string
	}{
		{"plain", nil},
		{"stripped", []string{"-ldflags=-s -w"}},
		{"pie", []string{"-ldflags=-s -w", "-buildmode=pie"}},
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			x := start(t, buildGo(t, v.flags...))
			x.reach("main.outer", "")
			bad := map[string]int{}
			whole := 0
			const steps = 15000
			for range steps {
				x.step()
				frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
				names := x.names(frames)
				i := slices.Index(names, "main.main")
				last := strings.TrimSuffix(names[len(names)-1], ".abi0")
				// On the scheduler's stack there is no way back; in the few
				// instructions of these leaves the stack is being switched.
				leaf := strings.TrimSuffix(strings.TrimPrefix(names[0], "runtime."), ".abi0")
				switched := last == "runtime.morestack" || last == "runtime.mcall" ||
					slices.Contains([]string{"morestack", "morestack_noctxt", "gogo", "mcall"}, leaf)
				if truncated == "" && (switched || i > 0 && names[i-1] == "main.outer" && last == "runtime.goexit") {
					whole++
				} else {
					bad[truncated+" "+strings.Join(names, " < ")]++
				}
			}
			t.Logf("%d of %d whole", whole, steps)
			report(t, bad)
		})
	}
}
