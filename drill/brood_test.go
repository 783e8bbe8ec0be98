package drill

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// waitFor polls until ok; the state comes, only when is unknown.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// pidsIn reads the pids that a shell line wrote into files of a folder.
func pidsIn(t *testing.T, dir string, want int) []int {
	t.Helper()
	var pids []int
	waitFor(t, "pids of the children", func() bool {
		pids = nil
		files, _ := filepath.Glob(filepath.Join(dir, "pid.*"))
		for _, f := range files {
			if data, err := readBounded(f, 32); err == nil {
				if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
					pids = append(pids, n)
				}
			}
		}
		return len(pids) == want
	})
	return pids
}

func TestBroodKillsItsOwnAndNobodyElse(t *testing.T) {
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()

	dir := t.TempDir()
	b := newBrood()
	// A child, one that lost its parent, and one that also left the session.
	line := `cd "$1"; sleep 60 & echo $! > pid.child
	(sleep 60 & echo $! > pid.orphan)
	setsid sleep 60 & echo $! > pid.session
	trap "" TERM; sleep 60 & echo $! > pid.last; wait`
	j, err := launch(b, filepath.Join(dir, "log"), nil, "/bin/bash", "-c", line, "bash", dir)
	if err != nil {
		t.Fatal(err)
	}
	ours := append(pidsIn(t, dir, 4), j.cmd.Process.Pid)
	b.note()
	b.strays()
	if left := b.kill(); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	for _, pid := range ours {
		if lives(pid) {
			t.Errorf("process %d of the run still lives", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if !lives(stranger.Process.Pid) {
		t.Error("a process of somebody else was killed")
	}
}

func TestBroodDoesNotTakeAnOlderProcess(t *testing.T) {
	old := exec.Command("sleep", "60")
	if err := old.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Process.Kill(); _ = old.Wait() }()
	b := newBrood()
	b.since = ticksNow() + 1000 // as if the run began later
	b.add(old.Process.Pid)
	if got := b.alive(); len(got) > 0 {
		t.Errorf("took up %v", got)
	}
}

func TestBroodSignalChecksTheStartTime(t *testing.T) {
	p := exec.Command("sleep", "60")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Process.Kill(); _ = p.Wait() }()
	b := newBrood()
	b.add(p.Process.Pid)
	b.born[p.Process.Pid]-- // the pid of an earlier process, used again since
	b.signal(p.Process.Pid, unix.SIGKILL)
	if !lives(p.Process.Pid) {
		t.Error("a process with a reused pid was killed")
	}
	if got := b.alive(); len(got) > 0 {
		t.Errorf("a reused pid counts as alive: %v", got)
	}
}

func TestChildren(t *testing.T) {
	dir := t.TempDir()
	b := newBrood()
	j, err := launch(b, filepath.Join(dir, "log"), nil, "/bin/bash", "-c",
		`sleep 60 & echo $! > "$1/pid.a"; sleep 60 & echo $! > "$1/pid.b"; wait`, "bash", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.kill()
	want := pidsIn(t, dir, 2)
	slices.Sort(want)
	if got := children(j.cmd.Process.Pid); !slices.Equal(got, want) {
		t.Errorf("children %v, want %v", got, want)
	}
	if got := childrenByScan(j.cmd.Process.Pid); !slices.Equal(got, want) {
		t.Errorf("children by scan %v, want %v", got, want)
	}
}
