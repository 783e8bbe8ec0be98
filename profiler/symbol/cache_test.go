package symbol

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
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
	p.image(t, c, p.function)
	before := openFiles(t)
	for range 20 {
		p.image(t, c, p.function)
		for _, m := range p.maps {
			if m.Inode == 0 {
				_, _ = c.Open(p.pid, m)
			}
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

// TestExpired has a host that gets one new program after the other, and one
// that stays. What nobody uses must go, with its file; what is used must not be
// read twice.
func TestExpired(t *testing.T) {
	c := NewCache(64)
	stays := start(t, build(t, "-Wl,--build-id=0x00"))
	used, _ := stays.image(t, c, stays.function)
	for n := range 8 {
		p := start(t, build(t, "-Wl,--build-id=0x0"+strconv.Itoa(n+1)))
		image, _ := p.image(t, c, p.function)
		image.Name(0) // reads its symbols
	}
	if c.Expire(time.Hour); c.order.Len() != 9 {
		t.Fatalf("%d images are kept that were asked for just now, want 9", c.order.Len())
	}
	files := openFiles(t)
	c.Expire(0)
	for range 1000 {
		if runtime.GC(); openFiles(t) <= files-8 {
			break
		}
		time.Sleep(10 * time.Millisecond) // the runtime closes files beside
	}
	c.Expire(0)
	if c.order.Len() != 1 || len(c.byFile) != 1 || len(c.byBuild) != 1 {
		t.Errorf("%d images, %d files, %d builds are kept, one is used", c.order.Len(), len(c.byFile), len(c.byBuild))
	}
	if now := openFiles(t); now > files-8 {
		t.Errorf("%d files are open, with all images it were %d", now, files)
	}
	if again, _ := stays.image(t, c, stays.function); again != used {
		t.Error("an image that is used was read again")
	}
	runtime.KeepAlive(used)
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
