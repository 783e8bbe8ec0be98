package incident

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mounted mounts a small file system of its own for one test.
func mounted(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatalf("mount: %v", err)
		}
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	s, err := Open(filepath.Join(mounted(t, "size=512k"), "incidents"), Retention{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	inc := gcdNaN()
	inc.Ended, inc.Outcome = nil, ""
	if err := s.Create(inc, nil); err != nil {
		t.Fatal(err)
	}
	big := map[string][]byte{ProfileFile: make([]byte, 1<<20)}
	if err := s.Create(numbered(1), big); err == nil || !strings.Contains(err.Error(), "retention.bytes") {
		t.Errorf("create: %v", err)
	}
	inc.Outcome = Refused
	if err := s.Update(inc, big); err == nil || !strings.Contains(err.Error(), "retention.bytes") {
		t.Errorf("update: %v", err)
	}
	leftovers(t, s.Dir(), 0)
	got, err := s.Load(inc.ID)
	if err != nil || got.Outcome != "" {
		t.Errorf("the old state is gone: %+v %v", got, err)
	}
	if list, err := s.List(Filter{}); err != nil || len(list) != 1 || list[0].Outcome != "" {
		t.Errorf("list: %v %v", list, err)
	}
	if err := s.Update(inc, nil); err != nil {
		t.Errorf("after the disk has room again: %v", err)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := mounted(t, "size=512k")
	s, err := Open(filepath.Join(dir, "incidents"), Retention{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Create(gcdNaN(), nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("remount: %v", err)
	}
	if err := s.Create(numbered(1), nil); err == nil || !strings.Contains(err.Error(), "state_dir") {
		t.Errorf("create: %v", err)
	}
	if _, err := s.Load(gcdNaN().ID); err != nil {
		t.Errorf("reading: %v", err)
	}
}
