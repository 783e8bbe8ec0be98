package lua

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

var update = flag.Bool("update", false, "record the images anew, from the interpreters of this host")

// image is what a walk needs of a process: its heap, and the words of its
// machine stack that point into it.
type image struct {
	heap  procmem.Window
	words []uint64
}

// record copies the image of a running script.
func record(t *testing.T, version string) image {
	t.Helper()
	p, _ := start(t, "lua"+version, "traceback.lua")
	settled(t, newVM(t, version), p)
	maps, err := procmem.ReadMaps(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(maps, func(m procmem.Mapping) bool { return m.Path == "[heap]" })
	if i < 0 {
		t.Fatal("no heap")
	}
	im := image{heap: procmem.Window{Addr: maps[i].Start, Data: make([]byte, maps[i].End-maps[i].Start)}}
	list := words(t, p)
	if err := p.ReadMemory(im.heap.Addr, im.heap.Data); err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		if w >= maps[i].Start && w < maps[i].End {
			im.words = append(im.words, w)
		}
	}
	return im
}

func (im image) write(t *testing.T, path string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, v := range append([]uint64{im.heap.Addr, uint64(len(im.words))}, im.words...) {
		_ = binary.Write(z, binary.LittleEndian, v) // to memory: can't fail
	}
	_, _ = z.Write(im.heap.Data)
	_ = z.Close()
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, version string) (im image) {
	t.Helper()
	f, err := os.Open("testdata/images/" + version + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil || len(data) < 16 {
		t.Fatal(len(data), err)
	}
	im.heap.Addr = u64(data, 0)
	n := int(u64(data, 8))
	for i := range n {
		im.words = append(im.words, u64(data, 16+8*i))
	}
	im.heap.Data = data[16+8*n:]
	return im
}

// The walk of recorded images, for hosts without the interpreters.
func TestImages(t *testing.T) {
	for _, version := range []string{"5.3", "5.4"} {
		if *update {
			record(t, version).write(t, "testdata/images/"+version+".gz")
		}
		im := load(t, version)
		w := newVM(t, version).Walk(im.heap, im.words)
		got, _ := walkLines(w)
		if len(got) != 12 || w.Truncated != "" || got[0] != "traceback.lua:5 stay" || got[11] != "traceback.lua:51 main chunk" {
			t.Errorf("%s: %s\n%s", version, w.Truncated, strings.Join(got, "\n"))
		}
	}
}

// Without its proof nothing that looks like a state counts.
func TestStateWithoutProof(t *testing.T) {
	im := load(t, "5.3")
	at := bytes.Index(im.heap.Data, []byte(firstString))
	if at < 0 {
		t.Fatal("the image lacks the string")
	}
	im.heap.Data[at] ^= 1
	if w := newVM(t, "5.3").Walk(im.heap, im.words); len(w.Runs) != 0 {
		t.Errorf("%+v", w)
	}
	if im = load(t, "5.4"); len(newVM(t, "5.3").Walk(im.heap, im.words).Runs) != 0 {
		t.Error("5.4 is read as 5.3")
	}
	for _, ident := range []string{"", "Lua 5.1", "$LuaVersion: Lua 5.2.4", "$LuaVersion: Lua 5.5.0"} {
		if New(ident) != nil {
			t.Errorf("%q is taken", ident)
		}
	}
}

// FuzzWalk damages three words of an image.
func FuzzWalk(f *testing.F) {
	images := map[bool]image{false: load(f, "5.3"), true: load(f, "5.4")}
	f.Add(true, uint32(0), uint64(0), uint32(100), ^uint64(0), uint32(200), uint64(1))
	f.Add(false, uint32(0), uint64(0), uint32(100), ^uint64(0), uint32(200), uint64(1))
	f.Fuzz(func(t *testing.T, newer bool, at1 uint32, v1 uint64, at2 uint32, v2 uint64, at3 uint32, v3 uint64) {
		version := map[bool]string{false: "5.3", true: "5.4"}[newer]
		im := images[newer]
		mem := procmem.Window{Addr: im.heap.Addr, Data: slices.Clone(im.heap.Data)}
		for _, d := range []struct {
			at uint32
			v  uint64
		}{{at1, v1}, {at2, v2}, {at3, v3}} {
			// Most of what is read lies at the states that the stack points to.
			near := im.words[int(d.at)%len(im.words)] - mem.Addr + uint64(d.at>>8)%4096
			if near = near &^ 7; near+8 <= uint64(len(mem.Data)) {
				binary.LittleEndian.PutUint64(mem.Data[near:], d.v)
			}
		}
		w := newVMOf(version).Walk(mem, im.words)
		n := 0
		for _, run := range w.Runs {
			n += len(run.Frames)
		}
		if n > 2*maxThreads*(maxFrames+1) {
			t.Errorf("%d frames", n)
		}
	})
}

func newVMOf(version string) *VM { return New("$LuaVersion: Lua " + version + ".0") }
