package symbol

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

func need(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		skip(t, program+": not installed")
	}
	return path
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		skip(t, "needs root")
	}
}

// skip leaves a test out for what is missing, which must not be where all is
// required.
func skip(t testing.TB, missing string) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func run(t testing.TB, program string, args ...string) {
	t.Helper()
	if text, err := exec.Command(need(t, program), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, text)
	}
}

// build compiles testdata/program.c with its symbols exported, as nginx is.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	run(t, "gcc", append([]string{"-O1", "-o", out, "testdata/program.c", "-rdynamic"}, flags...)...)
	return out
}

// program is a running testdata/program.c and what it says of itself.
type program struct {
	pid              int
	function, object uint64
	maps             procmem.Maps
}

func start(t testing.TB, path string, args ...string) *program {
	t.Helper()
	return startCommand(t, exec.Command(path, args...))
}

func startCommand(t testing.TB, cmd *exec.Cmd) *program {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &program{pid: cmd.Process.Pid}
	if _, err := fmt.Fscanf(io.Reader(out), "0x%x 0x%x\n", &p.function, &p.object); err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	if p.maps, err = procmem.ReadMaps(p.pid); err != nil {
		t.Fatal(err)
	}
	return p
}

// image opens the image that holds an address, and gives the vaddr.
func (p *program) image(t testing.TB, c *Cache, addr uint64) (*Image, uint64) {
	t.Helper()
	m, ok := p.maps.Find(addr)
	if !ok {
		t.Fatalf("no mapping at %#x", addr)
	}
	image, err := c.Open(p.pid, m)
	if err != nil {
		t.Fatal(err)
	}
	bias, ok := image.Bias(m)
	if !ok {
		t.Fatalf("no bias for %+v", m)
	}
	return image, addr - bias
}

// biased gives the address at which a vaddr of the program lies.
func (p *program) biased(t testing.TB, vaddr uint64) uint64 {
	t.Helper()
	_, function := p.image(t, NewCache(1), p.function)
	return p.function - function + vaddr
}

// check wants the symbols to be found where the program says they are.
func (p *program) check(t testing.TB) {
	t.Helper()
	c := NewCache(16)
	if addr, size, ok := c.Symbol(p.pid, p.maps, "exported_function"); !ok || addr != p.function || size == 0 {
		t.Errorf("exported_function at %#x, %d bytes, %v; the program says %#x", addr, size, ok, p.function)
	}
	if addr, size, ok := c.Symbol(p.pid, p.maps, "exported_object"); !ok || addr != p.object || size != 4 {
		t.Errorf("exported_object at %#x, %d bytes, %v; the program says %#x", addr, size, ok, p.object)
	}
	image, vaddr := p.image(t, c, p.function)
	if name := image.Name(vaddr + 1); name != "exported_function" {
		t.Errorf("name %q", name)
	}
}
