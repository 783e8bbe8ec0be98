package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestReplacedFile upgrades a running program: the running one must still be
// read, not its successor, also where only the path is open to us.
func TestReplacedFile(t *testing.T) {
	path := build(t)
	p := start(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.check(t)
	copyFile(t, build(t, "-O3"), path)
	p.check(t)

	m, _ := p.maps.Find(p.function)
	if _, _, err := openNamed(m, func() (*os.File, fileKey, error) { return openInRoot(p.pid, path) }); err == nil ||
		!strings.Contains(err.Error(), "another file") {
		t.Errorf("opened by its path: %v", err)
	}
}

// TestNamedWays checks that an unchanged file is found without map_files.
func TestNamedWays(t *testing.T) {
	path := build(t)
	p := start(t, path)
	m, _ := p.maps.Find(p.function)
	f, key, err := openNamed(m, func() (*os.File, fileKey, error) { return openInRoot(p.pid, m.Path) })
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if key.inode != m.Inode {
		t.Errorf("inode %d, want %d", key.inode, m.Inode)
	}
}

// TestMountNamespace reads a program that only its own mount namespace holds.
func TestMountNamespace(t *testing.T) {
	needRoot(t)
	path, dir := build(t), t.TempDir()
	inside := filepath.Join(dir, "program")
	script := `mount -t tmpfs none "$1" && cp "$2" "$3" && exec "$3"`
	cmd := exec.Command(need(t, "unshare"), "-m", "sh", "-ec", script, "sh", dir, path, inside)
	p := startCommand(t, cmd)
	if _, err := os.Stat(inside); err == nil {
		t.Fatal("the program is visible outside")
	}
	p.check(t)
}

// TestContainers runs two builds at one path, each in a mount namespace of its
// own: each is read as it is, and copies of one build are parsed once.
func TestContainers(t *testing.T) {
	needRoot(t)
	dir, c := t.TempDir(), NewCache(16)
	inside := filepath.Join(dir, "program")
	old, now := build(t), build(t, "-O3")
	script := `mount -t tmpfs none "$1" && cp "$2" "$3" && exec "$3"`
	images := map[string][]*Image{}
	for _, path := range []string{old, now, old, now} {
		p := startCommand(t, exec.Command(need(t, "unshare"), "-m", "sh", "-ec", script, "sh", dir, path, inside))
		p.check(t)
		image, vaddr := p.image(t, c, p.function)
		if got := image.Name(vaddr); got != "exported_function" || image.Path != inside {
			t.Errorf("%s of %s", got, image.Path)
		}
		images[path] = append(images[path], image)
	}
	if images[old][0] != images[old][1] || images[now][0] != images[now][1] {
		t.Error("two containers with one build do not share an image")
	}
	if images[old][0] == images[now][0] {
		t.Error("two builds at one path share an image")
	}
}

// TestSpecialFiles wants nothing but regular files to be opened: a FIFO would
// block the agent.
func TestSpecialFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	run(t, "mkfifo", fifo)
	for _, path := range []string{fifo, "/dev/zero", t.TempDir()} {
		if f, _, err := openRegular(path); err == nil {
			f.Close()
			t.Errorf("%s was opened", path)
		}
	}
}
