package symbol

import (
	"bytes"
	"os"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// exercise asks an image for everything.
func exercise(t *testing.T, i *Image) {
	_ = i.BuildID()
	for _, v := range []uint64{0, 1, i.Entry(), i.Entry() + 3, 0x40010d, 1 << 40, 1<<64 - 1} {
		_ = i.Name(v)
		_ = i.ReadVaddr(v, make([]byte, 7))
	}
	_, _, _ = i.Lookup("twice")
	_, _ = i.Bias(procmem.Mapping{Start: 0x400000, End: 0x401000, Exec: true})
	_, _ = i.Bias(procmem.Mapping{Start: 0x400000, End: 0x401000, Offset: 0x1000})
	_, _, _ = i.debugLink()
	if mini, err := i.file.miniDebug(); err == nil {
		_, _ = mini.symbolTable(".symtab")
	}
	_ = i.UnwindTables()
	_ = i.GoTable()
	if caught.Load() > 0 {
		t.Fatal("a parser panicked")
	}
}

// FuzzImage opens hostile files. testdata/tiny.elf is a program of two
// functions, linked without libraries.
func FuzzImage(f *testing.F) {
	seed, err := os.ReadFile("testdata/tiny.elf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:300])
	f.Fuzz(func(t *testing.T, data []byte) {
		image, err := newImage("fuzzed", bytes.NewReader(data), int64(len(data)))
		if err == nil {
			exercise(t, image)
		}
	})
}

// FuzzXZ unpacks hostile streams.
func FuzzXZ(f *testing.F) {
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x02abc\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if out, err := unxz(data); err == nil && len(out) > maxMiniDebug {
			t.Errorf("%d bytes", len(out))
		}
	})
}

// TestTiny checks the seed itself.
func TestTiny(t *testing.T) {
	data, err := os.ReadFile("testdata/tiny.elf")
	if err != nil {
		t.Fatal(err)
	}
	image, err := newImage("tiny", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	v, size, ok := image.Lookup("twice")
	if !ok || size == 0 || image.Name(v+size-1) != "twice" || image.Name(v+size) == "twice" {
		t.Errorf("twice at %#x, %d bytes, %v", v, size, ok)
	}
	exercise(t, image)
}

// TestHostile cuts and bends the file at every byte.
func TestHostile(t *testing.T) {
	data, err := os.ReadFile("testdata/tiny.elf")
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if image, err := newImage("cut", bytes.NewReader(data[:n]), int64(n)); err == nil {
			exercise(t, image)
		}
		for _, b := range []byte{0, 0x7f, 0xff} {
			bent := bytes.Clone(data)
			bent[n] = b
			if image, err := newImage("bent", bytes.NewReader(bent), int64(len(bent))); err == nil {
				exercise(t, image)
			}
		}
	}
}

// TestHugeDictionary wants a stream that asks for 4 GiB to be refused before
// they are allocated.
func TestHugeDictionary(t *testing.T) {
	head := []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x28\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x02abc\x00")
	if _, err := unxz(head); err == nil {
		t.Error("accepted")
	}
	head[16] = 0x16
	if out, err := unxz(head); err != nil || string(out) != "abc" {
		t.Errorf("with 8 MiB: %q %v", out, err)
	}
}
