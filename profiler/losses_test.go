package profiler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
)

// startLossy runs testdata/losses.c.
func startLossy(t *testing.T) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "losses")
	if text, err := exec.Command("gcc", "-O1", "-pthread", "-o", path, "testdata/losses.c").CombinedOutput(); err != nil {
		missing(t, "gcc: "+string(text))
	}
	cmd := exec.Command(path)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(aMinute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", cmd.Process.Pid)); err == nil && len(threads) == 3 {
			return cmd.Process.Pid
		}
	}
	t.Fatal("the program has not started its threads")
	return 0
}

// TestCaptureWithLosses lets the ring run full, and takes stacks that are cut:
// each sample is in the profile or counted with a reason, and each cut stack
// has its own root and its reason.
func TestCaptureWithLosses(t *testing.T) {
	s, err := bpf.Open(1999)
	if err != nil {
		missing(t, err.Error())
	}
	t.Cleanup(func() { _ = s.Close() })
	p := openProcess(t, startLossy(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	full := uint64(0)
	end := time.Now().Add(aMinute)
	prof, err := Capture(ctx, s, p, CaptureOptions{Duration: aMinute, Progress: func(now Progress) {
		for full == 0 && now.Samples > 50 && time.Now().Before(end) { // meanwhile nobody reads
			counters, err := s.Counters()
			if err != nil {
				t.Error(err)
			}
			full = counters.LostRing
			time.Sleep(10 * time.Millisecond)
		}
		if full > 0 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	counters, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if taken := commentNumber(t, prof, "samples_taken"); taken != counters.Taken {
		t.Errorf("samples_taken=%d, the sampler took %d", taken, counters.Taken)
	}
	if lost := commentNumber(t, prof, "samples_lost"); lost < full || lost != commentNumber(t, prof, "lost_ring_full") {
		t.Errorf("samples_lost=%d, the ring was full %d times: %q", lost, full, prof.Comments)
	}
	var shown, cut int64
	for _, x := range prof.Sample {
		shown += x.Value[0]
		root := x.Location[len(x.Location)-1].Line[0].Function.Name
		switch {
		case root == truncatedRoot:
			cut += x.Value[0]
		case !strings.HasPrefix(root, "clone") && root != "_start" && root != "start_thread":
			t.Errorf("a stack that ends at %s counts as whole", root)
		}
		if leaf := x.Location[0]; leaf.Mapping.File == "[pcre]" {
			t.Error("code that is not PCRE's is called so")
		}
	}
	if uint64(shown) != commentNumber(t, prof, "samples_shown") || uint64(cut) != commentNumber(t, prof, "samples_truncated") {
		t.Errorf("%d samples, %d of them cut: %q", shown, cut, prof.Comments)
	}
	if sum := commentNumber(t, prof, "truncated_cut_window") + commentNumber(t, prof, "truncated_no_rule"); sum != uint64(cut) || cut == 0 {
		t.Errorf("%d of %d cut samples have their reason", sum, cut)
	}
}
