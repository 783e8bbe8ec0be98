package balancer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var noon = time.UnixMilli(1796000000000)

func version(id string, n uint64, until time.Duration) Entry {
	return Entry{ID: id, Kind: KindVersion, Upstream: "backend", Version: n, Until: noon.Add(until)}
}

func openTemp(t *testing.T) *Ledger {
	t.Helper()
	l, err := OpenLedger(filepath.Join(t.TempDir(), "run", "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func ids(t *testing.T, l *Ledger, now time.Time) string {
	t.Helper()
	entries, err := l.List(now)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.ID)
	}
	return strings.Join(list, " ")
}

func TestLedgerAddListLift(t *testing.T) {
	l := openTemp(t)
	full := Entry{
		ID: "a", Origin: "node1/agent", Kind: KindVersion, Upstream: "backend", Version: 2, Digest: "0123456789abcdef",
		Since: noon, Until: noon.Add(30 * time.Second), Reason: "worker 12 hung in gcd",
	}
	for _, e := range []Entry{full, version("b", 3, time.Second), {ID: "c", Kind: KindRoute, Subject: "HEAD /x", Until: noon.Add(time.Minute)}} {
		if _, err := l.Add(e, noon); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := l.List(noon)
	if err != nil || len(entries) != 3 || !entries[0].Until.Equal(full.Until) || entries[0].Reason != full.Reason || entries[0].Digest != full.Digest {
		t.Fatalf("entries %+v, %v", entries, err)
	}
	if got := ids(t, l, noon.Add(2*time.Second)); got != "a c" {
		t.Errorf("two seconds later: %q", got)
	}
	if ok, err := l.Lift("a", noon); !ok || err != nil {
		t.Errorf("lift a: %v %v", ok, err)
	}
	if ok, err := l.Lift("a", noon); ok || err != nil {
		t.Errorf("lift a again: %v %v", ok, err)
	}
	if err := l.Prune(noon.Add(time.Hour)); err != nil || ids(t, l, noon) != "" {
		t.Errorf("pruned: %q, %v", ids(t, l, noon), err)
	}
}

// An ended entry stays in the file for a while: the workers but the first wait
// for it a little longer.
func TestLedgerKeepsEndedEntriesForAWhile(t *testing.T) {
	l := openTemp(t)
	if _, err := l.Add(version("a", 1, time.Second), noon); err != nil {
		t.Fatal(err)
	}
	for i, after := range []time.Duration{5 * time.Second, 12 * time.Second} {
		if err := l.Prune(noon.Add(after)); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, l, noon.Add(after)); got != "" {
			t.Errorf("%v later %q is listed", after, got)
		}
		if entries, _, err := read(l.f); err != nil || len(entries) != 1-i {
			t.Errorf("%v later: %d entries in the file, want %d, %v", after, len(entries), 1-i, err)
		}
	}
}

func TestLedgerRefusesWhatDoesNotFit(t *testing.T) {
	l := openTemp(t)
	for want, e := range map[string]Entry{
		"kind 0":          {Upstream: "backend", Until: noon},
		"neither version": {Kind: KindVersion, Upstream: "backend", Until: noon},
		"no peer named":   {Kind: KindPeer, Upstream: "backend", Until: noon},
		"no upstream":     {Kind: KindVersion, Version: 1, Until: noon},
		"no end":          {Kind: KindVersion, Upstream: "backend", Version: 1},
		"upstream":        {Kind: KindVersion, Upstream: strings.Repeat("x", 64), Version: 1, Until: noon},
		"zero bytes":      {Kind: KindPeer, Upstream: "backend", Subject: "a\x00b", Until: noon},
	} {
		if _, err := l.Add(e, noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	for i := range ledgerCapacity {
		if _, err := l.Add(version(fmt.Sprint(i), 1, time.Minute), noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Add(version("more", 1, time.Minute), noon); !errors.Is(err, ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := l.Add(version("0", 9, time.Minute), noon); err != nil {
		t.Errorf("replacing in a full ledger: %v", err)
	}
}

func TestLedgerRefusesUntrustedFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	l, err := OpenLedger(good)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	link, hard, open, sub := filepath.Join(dir, "link"), filepath.Join(dir, "hard"), filepath.Join(dir, "open"), filepath.Join(dir, "sub")
	err = errors.Join(os.Symlink(good, link), os.WriteFile(open, nil, 0o644), os.Chmod(open, 0o666), os.Mkdir(sub, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{link: "symbolic link", open: "mode 666", sub: "directory"} {
		if _, err := OpenLedger(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if err := os.Link(good, hard); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(hard); err == nil || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("hard link: %v", err)
	}
}

func TestLedgerRepairsGarbage(t *testing.T) {
	for name, garbage := range map[string][]byte{
		"empty": nil, "short": []byte("SPINLDG1"), "random": bytes.Repeat([]byte{0xa5}, ledgerSize),
		"header only": newHeader(7),
	} {
		path := filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(path, garbage, 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLedger(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := l.Add(version("a", 1, time.Minute), noon); err != nil || ids(t, l, noon) != "a" {
			t.Errorf("%s: %v, entries %q", name, err, ids(t, l, noon))
		}
		_ = l.Close()
	}
}

// A ledger that was replaced or removed is followed, as the workers do.
func TestLedgerFollowsThePath(t *testing.T) {
	l := openTemp(t)
	if _, err := l.Add(version("a", 1, time.Minute), noon); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Add(version("b", 1, time.Minute), noon); err != nil {
		t.Fatal(err)
	}
	other, err := OpenLedger(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if got := ids(t, other, noon); got != "b" {
		t.Errorf("entries %q, want b", got)
	}
}

// Every prefix of the writes of a change leaves either the old or the new
// state: the writer may be killed anywhere.
func TestLedgerWriteIsWholeOrAbsent(t *testing.T) {
	old := []Entry{version("old", 1, time.Minute)}
	fresh := []Entry{version("new", 2, time.Minute), version("old", 1, time.Minute)}
	before := make(image, ledgerSize)
	_ = write(before, nil, 6, noon)
	_ = write(before, old, 7, noon)
	var log writes
	_ = write(&log, fresh, 8, noon)
	for n := range log.size() + 1 {
		after := bytes.Clone(before)
		log.apply(after, n)
		entries, _, err := read(bytes.NewReader(after))
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		if !sameIDs(entries, old) && !sameIDs(entries, fresh) {
			t.Fatalf("after %d bytes: %+v", n, entries)
		}
	}
}

func sameIDs(a, b []Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID {
			return false
		}
	}
	return true
}

type image []byte

func (m image) WriteAt(b []byte, at int64) (int, error) { return copy(m[at:], b), nil }

// writes records what was written, in order.
type writes struct {
	data []byte
	at   []int64
}

func (w *writes) WriteAt(b []byte, at int64) (int, error) {
	for i, c := range b {
		w.data, w.at = append(w.data, c), append(w.at, at+int64(i))
	}
	return len(b), nil
}

func (w *writes) size() int { return len(w.data) }

func (w *writes) apply(b []byte, n int) {
	for i := range n {
		b[w.at[i]] = w.data[i]
	}
}

func TestLedgerManyWriters(t *testing.T) {
	l := openTemp(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mine, err := OpenLedger(l.Path())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = mine.Close() }()
			for i := range 20 {
				if _, err := mine.Add(version(fmt.Sprintf("%d-%d", w, i), 1, time.Minute), noon); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if n := len(strings.Fields(ids(t, l, noon))); n != 80 {
		t.Errorf("%d entries, want 80", n)
	}
}

// TestLedgerSurvivesSIGKILL kills a writer at arbitrary moments.
func TestLedgerSurvivesSIGKILL(t *testing.T) {
	if path := os.Getenv("SPINGUARD_TEST_LEDGER"); path != "" {
		writeForEver(path)
	}
	path := filepath.Join(t.TempDir(), "ledger")
	for i := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLedgerSurvivesSIGKILL$")
		cmd.Env = append(os.Environ(), "SPINGUARD_TEST_LEDGER="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a ledger", func() bool { _, err := os.Stat(path); return err == nil })
		time.Sleep(time.Duration(i) * 3 * time.Millisecond)
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(f); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		f.Close()
	}
}

func writeForEver(path string) {
	for i := uint64(1); ; i++ {
		l, err := OpenLedger(path)
		if err == nil {
			_, _ = l.Add(version(fmt.Sprint(i%50), i, time.Minute), noon)
			_ = l.Close()
		}
	}
}

func FuzzLedger(f *testing.F) {
	good := make(image, ledgerSize)
	_ = write(good, []Entry{version("a", 1, time.Minute)}, 7, noon)
	f.Add([]byte(good[:bankOffset+2*bankHeader]))
	f.Add([]byte(encodeBank([]Entry{version("a", 1, time.Minute)}, noon)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, err := read(bytes.NewReader(b))
		if err == nil && len(b) < bankOffset {
			t.Error("a ledger without a bank")
		}
		if entries, err := decodeBank(b); err == nil {
			for _, e := range entries {
				_, _ = e.Until.MarshalJSON()
			}
		}
	})
}
