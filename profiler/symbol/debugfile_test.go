package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// keepDebug makes a debug file of a program.
func keepDebug(t *testing.T, path, debug string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--only-keep-debug", path, debug)
}

// rooted runs a static program as /program of a root of its own.
func rooted(t *testing.T, root, path string) *program {
	t.Helper()
	copyFile(t, path, filepath.Join(root, "program"))
	return startCommand(t, exec.Command(need(t, "chroot"), root, "/program"))
}

// TestWrongDebugFile wants a debug file of another build, which lies where that
// of this one belongs, not to be believed.
func TestWrongDebugFile(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	path := build(t, "-static", "-Wl,--build-id=0xab12cd")
	v := hidden(t, path)
	keepDebug(t, build(t, "-static", "-Wl,--build-id=0xab12ce"), filepath.Join(root, "/usr/lib/debug/.build-id/ab/12cd.debug"))
	run(t, "strip", path)
	p := rooted(t, root, path)
	image, _ := p.image(t, NewCache(4), p.function)
	if got := image.Name(v); !strings.HasPrefix(got, "program+0x") {
		t.Errorf("name %q from the debug file of another build", got)
	}
}

// TestDebugFileOutside has an old debug file where the process looks: the right
// one, which only the agent sees, is then taken.
func TestDebugFileOutside(t *testing.T) {
	needRoot(t)
	path, old := build(t), build(t, "-O2")
	v := hidden(t, path)
	keepDebug(t, old, old+".debug")
	linkDebug(t, path, "program.debug")
	script := `cp "$1" "$3.copy" && mount -t tmpfs none "$2" && cp "$3" "$2/program.debug" && cp "$3.copy" "$2/program" && exec "$2/program"`
	p := startCommand(t, exec.Command(need(t, "unshare"), "-m", "sh", "-ec", script, "sh", path, filepath.Dir(path), old+".debug"))
	image, _ := p.image(t, NewCache(4), p.function)
	if got := image.Name(v); got != "hidden_function" {
		t.Errorf("name %q", got)
	}
}

// TestNamedInRoot opens a program that changed its root by its path, as where
// map_files is closed to us.
func TestNamedInRoot(t *testing.T) {
	needRoot(t)
	p := rooted(t, t.TempDir(), build(t, "-static"))
	m, _ := p.maps.Find(p.function)
	f, _, err := openNamed(m, func() (*os.File, fileKey, error) { return openInRoot(p.pid, pathInRoot(p.pid, m.Path)) })
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestGapAfterSymbol wants an address behind the end of a symbol not to get its
// name, also where no unwind table says what is there.
func TestGapAfterSymbol(t *testing.T) {
	path := build(t, "-fno-asynchronous-unwind-tables", "-falign-functions=64")
	p := start(t, path)
	image, vaddr := p.image(t, NewCache(4), p.function)
	_, size, ok := image.Lookup("exported_function")
	if !ok || size == 0 || size >= 64 {
		t.Fatalf("exported_function has %d bytes", size)
	}
	if got := image.Name(vaddr + size - 1); got != "exported_function" {
		t.Errorf("last byte: %q", got)
	}
	if got := image.Name(vaddr + size); !strings.HasPrefix(got, "program+0x") {
		t.Errorf("behind the last byte: %q", got)
	}
}
