package unwind

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompiledPattern walks out of code that PCRE compiled, for which nobody
// has rules, as in a worker stuck in a regular expression.
func TestCompiledPattern(t *testing.T) {
	const library = "/usr/lib/x86_64-linux-gnu/libpcre2-8.so.0"
	if _, err := os.Stat(library); err != nil {
		t.Skip(err)
	}
	host := filepath.Join(t.TempDir(), "pcrehost")
	if text, err := exec.Command(need(t, "gcc"), "-O2", "-o", host, "testdata/pcrehost.c", library).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	for _, mode := range []string{"interpreted", "compiled"} {
		t.Run(mode, func(t *testing.T) {
			args := []string{"jit"}[:map[string]int{"interpreted": 0, "compiled": 1}[mode]]
			x := start(t, host, args...)
			x.reach("pcre2_match_8", "")
			bad := map[string]int{}
			whole, found := 0, map[Method]int{}
			const steps = 20000
			for i := range steps {
				if i%100 == 0 {
					x.cont()
					x.stop()
				}
				x.step()
				frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
				found[frames[0].Found]++
				names := x.names(frames)
				m := slices.Index(names, "matches")
				if truncated == "" && m >= 0 && names[m+1] == "main" {
					whole++
				} else {
					bad[truncated+" "+strings.Join(names, " < ")]++
				}
			}
			t.Logf("%d of %d whole, leaf by %v", whole, steps, found)
			report(t, bad)
		})
	}
}
