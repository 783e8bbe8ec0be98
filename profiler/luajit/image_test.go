package luajit

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

var update = flag.Bool("update", false, "record the images and golden files of testdata anew")

// image is the memory that one walk reads, recorded from a live process.
type image struct {
	Maps      procmem.Maps
	Registers stack.Registers
	Windows   []procmem.Window // sorted, apart from each other
}

var errNotRecorded = errors.New("not recorded")

// ReadMemory implements procmem.Memory.
func (m *image) ReadMemory(addr uint64, buf []byte) error {
	i, found := slices.BinarySearchFunc(m.Windows, addr, func(w procmem.Window, a uint64) int { return cmp.Compare(w.Addr, a) })
	if !found {
		i--
	}
	if i < 0 || m.Windows[i].ReadMemory(addr, buf) != nil {
		return errNotRecorded
	}
	return nil
}

// recorder notes what is read.
type recorder struct {
	under procmem.Memory
	reads []procmem.Window
}

func (r *recorder) ReadMemory(addr uint64, buf []byte) error {
	if err := r.under.ReadMemory(addr, buf); err != nil {
		return err
	}
	r.reads = append(r.reads, procmem.Window{Addr: addr, Data: bytes.Clone(buf)})
	return nil
}

// windows merges what was read. The first reading of a byte counts.
func (r *recorder) windows() []procmem.Window {
	content := map[uint64]byte{}
	for _, w := range r.reads {
		for i, b := range w.Data {
			if _, ok := content[w.Addr+uint64(i)]; !ok {
				content[w.Addr+uint64(i)] = b
			}
		}
	}
	var addrs []uint64
	for a := range content {
		addrs = append(addrs, a)
	}
	slices.Sort(addrs)
	var out []procmem.Window
	for _, a := range addrs {
		if n := len(out); n == 0 || out[n-1].Addr+uint64(len(out[n-1].Data)) != a {
			out = append(out, procmem.Window{Addr: a})
		}
		last := &out[len(out)-1]
		last.Data = append(last.Data, content[a])
	}
	return out
}

// record takes an image of a running script, or of a nginx worker that is stuck
// in it.
func record(t *testing.T, script, mode string) *image {
	t.Helper()
	var p *procmem.Process
	var vm *VM
	if script == "nginx" {
		pid, url := nginxWorker(t)
		p, vm = attach(t, pid)
		_ = get(url + "/" + mode)
	} else {
		p, _ = start(t, engines(t)[0], script+".lua", mode)
		vm = findVMs(t, p)[0]
		time.Sleep(50 * time.Millisecond) // the script reaches its loop
	}
	maps, err := procmem.ReadMaps(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	mem, regs := sample(t, vm, p)
	m := &image{Registers: *regs}
	for _, x := range maps { // of writable memory, only the main thread
		if x.Write {
			if vm.main < x.Start || vm.main >= x.End {
				continue
			}
			x.Start = vm.main &^ 0xfff
			x.End = min(x.End, x.Start+0x2000)
		}
		m.Maps = append(m.Maps, x)
	}
	r := &recorder{under: mem}
	again, err := Find(r, m.Maps, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again[0].Walk(r, regs); err != nil {
		t.Fatal(err)
	}
	m.Windows = r.windows()
	return m
}

func (m *image) save(t *testing.T, path string) {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err := gob.NewEncoder(z).Encode(m); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loadImage(t testing.TB, path string) *image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	m := &image{}
	if err := gob.NewDecoder(z).Decode(m); err != nil {
		t.Fatal(err)
	}
	return m
}

var recorded = []struct{ script, mode string }{
	{"gcd", "on"}, {"gcd", "off"}, {"inline", "on"}, {"coroutine", "off"}, {"handler", "on"}, {"finaliser", "off"},
	{"nginx", "gcd"}, {"nginx", "filter"}, // workers of Debian's nginx, stuck
}

// TestRecorded finds and walks recorded machines: no LuaJIT is needed.
func TestRecorded(t *testing.T) {
	for _, c := range recorded {
		t.Run(c.script+"-"+c.mode, func(t *testing.T) {
			path := "testdata/images/" + c.script + "-" + c.mode
			if *update {
				record(t, c.script, c.mode).save(t, path+".gob.gz")
			}
			m := loadImage(t, path+".gob.gz")
			vms, err := Find(m, m.Maps, nil)
			if err != nil {
				t.Fatal(err)
			}
			w, err := vms[0].Walk(m, &m.Registers)
			if err != nil {
				t.Fatal(err)
			}
			got := text(w, nil) + "\n"
			if *update {
				if err := os.WriteFile(path+".golden", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
