package watchdog

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const sessionEnv = "SPINGUARD_TEST_SESSION"

// TestSessionChild is the program that the test below starts.
func TestSessionChild(t *testing.T) {
	if os.Getenv(sessionEnv) == "" {
		return
	}
	if err := preferSession(); err != nil {
		t.Fatal(err)
	}
	rank, err := os.ReadFile("/proc/self/autogroup")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("rank: %s", rank)
}

func TestOnlyASessionOfItsOwnIsPreferred(t *testing.T) {
	before, err := os.ReadFile("/proc/self/autogroup")
	if err != nil {
		t.Skip("this kernel does not share CPUs between sessions: ", err)
	}
	if os.Getuid() != 0 {
		t.Skip("only root may prefer a session")
	}
	for _, leads := range []bool{true, false} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSessionChild$", "-test.v")
		cmd.Env = append(os.Environ(), sessionEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: leads}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "nice -15") != leads {
			t.Errorf("leads its session %v: %v, %s", leads, err, out)
		}
	}
	if after, err := os.ReadFile("/proc/self/autogroup"); err != nil || string(after) != string(before) {
		t.Errorf("the session of others was %q, is %q, %v", before, after, err)
	}
}
