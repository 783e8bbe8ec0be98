package incident

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func breakJSON(t *testing.T, s *Store, id string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Path(id), JSONFile), []byte("{"), 0o640); err != nil {
		t.Fatal(err)
	}
}

// TestMain lets the test binary be the writer that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("INCIDENT_TEST_WRITER"); dir != "" {
		writeForEver(dir)
	}
	os.Exit(m.Run())
}

// writeForEver creates and updates incidents until it is killed.
func writeForEver(dir string) {
	s, err := Open(dir, Retention{Count: 20})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		inc := numbered(i)
		inc.ID = NewID(time.Now(), strings.NewReader("abc"))
		if err := s.Create(inc, map[string][]byte{FlameFile: svg, ProfileFile: bytes.Repeat([]byte("x"), 200_000)}); err != nil {
			panic(err)
		}
		if err := s.Update(inc, map[string][]byte{DiffFile: bytes.Repeat([]byte("y"), 100_000)}); err != nil {
			panic(err)
		}
		if _, err := s.Retain(time.Now()); err != nil {
			panic(err)
		}
		if i == 0 {
			_, _ = os.Stdout.WriteString("ready\n")
		}
	}
}

// A writer that is killed at any moment leaves only whole incidents, and what
// else it left is gone after the next Open.
func TestKilledWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "incidents")
	for range 8 {
		killWriter(t, dir)
		s, err := Open(dir, Retention{})
		if err != nil {
			t.Fatal(err)
		}
		leftovers(t, dir, 0)
		allWhole(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func killWriter(t *testing.T, dir string) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "INCIDENT_TEST_WRITER="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Errorf("writer: %q %v", line, err)
	}
	time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("writer ended by itself: %v", err)
	}
}

func allWhole(t *testing.T, s *Store) {
	t.Helper()
	list, err := s.List(Filter{})
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	for _, sum := range list {
		if sum.Error != "" {
			t.Errorf("%s: %s", sum.ID, sum.Error)
		}
		files, err := s.Files(sum.ID)
		if err != nil {
			t.Fatal(err)
		}
		sizes := map[string]int64{}
		for _, f := range files {
			sizes[f.Name] = f.Bytes
		}
		report := string(s.readFile(sum.ID, ReportFile, 1<<20))
		if sizes[ProfileFile] != 200_000 || sizes[FlameFile] != int64(len(svg)) || !strings.HasSuffix(report, "</html>\n") {
			t.Errorf("%s is not whole: %v", sum.ID, sizes)
		}
		if n, ok := sizes[DiffFile]; ok && n != 100_000 {
			t.Errorf("%s: %s of %d bytes", sum.ID, DiffFile, n)
		}
	}
}
