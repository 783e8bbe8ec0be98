package spool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// refusing are ways in which a disk takes nothing, and takes again.
var refusing = map[string]func(t *testing.T, dir string) (again func()){
	"full": func(t *testing.T, dir string) func() {
		ballast := filepath.Join(dir, "ballast")
		f, err := os.Create(ballast)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil { // until there is no room
			_, err = f.Write(make([]byte, 4096))
		}
		_ = f.Close()
		return func() { _ = os.Remove(ballast) }
	},
	"read-only": func(t *testing.T, dir string) func() {
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""); err != nil {
				t.Error(err)
			}
		}
	},
}

// While the receiver is away and the disk takes nothing, what comes waits in
// memory, within its bound. Once the disk takes it, a kill loses nothing more.
func TestReceiverAwayOverADiskThatTakesNothing(t *testing.T) {
	for name, refuse := range refusing {
		t.Run(name, func(t *testing.T) {
			root := mounted(t, "size=256k")
			limits := Limits{Items: 100, Bytes: 64 << 10, Memory: 4 << 10, Pause: small.Pause}
			s, err := Open(filepath.Join(root, "spool"), limits)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Put("before", make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			again := refuse(t, root)
			for i := range 10 {
				if err := s.Put(fmt.Sprint("meanwhile-", i), make([]byte, 1000)); err == nil {
					t.Fatal("the disk took an item")
				}
			}
			if c := s.Counts(); c.Waiting != 5 || c.Unsaved != 4 || c.Bytes != 5000 || c.Dropped != 6 {
				t.Errorf("meanwhile: %+v", c)
			}
			again()
			if err := s.Put("after", make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			// Killed here, the next agent has all that waits.
			next, err := Open(filepath.Join(root, "spool"), limits)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			deliverAll(next, func(_ context.Context, key string, data []byte) error {
				if len(data) != 1000 {
					t.Errorf("%s: %d bytes", key, len(data))
				}
				got = append(got, key)
				return nil
			})
			if want := []string{"before", "meanwhile-6", "meanwhile-7", "meanwhile-8", "meanwhile-9", "after"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// An agent that starts while the disk is read-only delivers what an earlier one
// left there, once, and what is new.
func TestStartOnAReadOnlyDisk(t *testing.T) {
	root := mounted(t, "size=256k")
	dir := filepath.Join(root, "spool")
	put(t, open(t, dir), "old")
	again := refusing["read-only"](t, root)
	defer again()
	s, err := Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put("new", []byte("data of new")); err == nil {
		t.Error("a read-only disk took an item")
	}
	got, _ := deliverAll(s, func(context.Context, string, []byte) error { return nil })
	if want := []string{"old=data of old", "new=data of new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
