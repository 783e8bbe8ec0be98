package symbol

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSharedImage wants copies of one build to share an image, and different
// builds not to.
func TestSharedImage(t *testing.T) {
	c := NewCache(8)
	path := build(t)
	twin := filepath.Join(t.TempDir(), "twin")
	copyFile(t, path, twin)
	stripped := filepath.Join(t.TempDir(), "stripped")
	copyFile(t, path, stripped)
	run(t, "strip", stripped)
	var images []*Image
	for _, path := range []string{path, path, twin, stripped, build(t, "-O2")} {
		p := start(t, path)
		image, _ := p.image(t, c, p.function)
		images = append(images, image)
	}
	if images[0] != images[1] || images[0] != images[2] {
		t.Error("copies of one file do not share an image")
	}
	if images[0] == images[3] || images[0] == images[4] {
		t.Error("different files share an image")
	}
}

// TestBound opens more images than the cache may hold.
func TestBound(t *testing.T) {
	c := NewCache(2)
	var last *program
	for _, id := range []string{"01", "02", "03", "04"} {
		last = start(t, build(t, "-Wl,--build-id=0x"+id))
		last.image(t, c, last.function)
	}
	if c.order.Len() != 2 || len(c.byFile) != 2 || len(c.byBuild) != 2 {
		t.Errorf("%d images, %d files, %d builds held, want 2", c.order.Len(), len(c.byFile), len(c.byBuild))
	}
	again, _ := last.image(t, c, last.function)
	if e := c.order.Front(); e.Value.(*cached).image != again {
		t.Error("the last image was not kept")
	}
}

// TestDescriptors wants dropped images and failures to leave no file open.
func TestDescriptors(t *testing.T) {
	c := NewCache(4)
	p := start(t, build(t))
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	p.image(t, c, p.function)
	before := open()
	for range 20 {
		p.image(t, c, p.function)
		for _, m := range p.maps {
			if m.Inode == 0 {
				_, _ = c.Open(p.pid, m)
			}
		}
	}
	if after := open(); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}
