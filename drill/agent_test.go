package drill

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// program returns a spinguard binary: the one that SPINGUARD_BIN names, else
// one that is built for this test.
func program(t *testing.T) string {
	t.Helper()
	if file := os.Getenv("SPINGUARD_BIN"); file != "" {
		return file
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "spinguard")
}

var wasBuilt bool

var built = sync.OnceValues(func() (string, error) {
	wasBuilt = true
	dir, err := os.MkdirTemp("", "spinguard-build-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "spinguard"), "../cmd/spinguard")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return dir, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if wasBuilt {
		dir, _ := built()
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// needAgent skips where the sampler cannot run.
func needAgent(t *testing.T) {
	t.Helper()
	need(t, "nginx")
	if os.Getenv("REQUIRE_BPF") == "1" {
		return
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skip("no BTF, so no sampler: ", err)
	}
}

// Scenarios that neither the cases nor the demo run, which the project's own
// check runs besides.
func TestDrillsWithTheAgent(t *testing.T) {
	needAgent(t)
	binary := program(t)
	for _, tt := range []struct{ name, mode string }{
		{"gcd-nan-four", ModeEnforce},
		{"gcd-nan-nojit", ModeObserve},
		{"haproxy-lua", ModeEnforce},
		{"stopped", ModeEnforce},
	} {
		t.Run(tt.name+" "+tt.mode, func(t *testing.T) {
			sc, err := Find(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			sc.after = 2 * time.Second
			res, err := Run(t.Context(), sc, Options{Mode: tt.mode, Out: t.TempDir(), Binary: binary})
			if err != nil {
				t.Fatal(err)
			}
			if !res.Passed {
				t.Errorf("failures: %q\nframes: %q", res.Failures, res.Evidence.Frames)
			}
			if len(res.Incidents) > 1 {
				t.Errorf("%d incidents of one culprit: %q", len(res.Incidents), res.Incidents)
			}
			for _, folder := range res.Incidents {
				samplesAddUp(t, folder)
			}
		})
	}
}

func TestAgentThatCannotStart(t *testing.T) {
	need(t, "nginx")
	sc, err := Find("idle")
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), sc, Options{Out: t.TempDir(), Binary: "/bin/false"})
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, res, "start of the agent: it ended: exit status 1")
}
