package profiler

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
)

// pagesOf is a memory of which each page holds its number, but for those that
// are gone. It counts how it is read.
type pagesOf struct {
	gone           map[uint64]bool
	refuses        bool
	single, atOnce int
}

func (p *pagesOf) ReadMemory(addr uint64, buf []byte) error {
	p.single++
	return p.read(addr, buf)
}

func (p *pagesOf) read(addr uint64, buf []byte) error {
	if p.gone[addr/pageSize] {
		return errUnreadable
	}
	clear(buf)
	binary.LittleEndian.PutUint64(buf, addr/pageSize)
	return nil
}

func (p *pagesOf) ReadMany(list []procmem.Window) (filled int, err error) {
	p.atOnce++
	if p.refuses {
		return 0, errors.New("refused")
	}
	for i, w := range list {
		if p.read(w.Addr, w.Data) != nil {
			return i, nil
		}
	}
	return len(list), nil
}

func TestPagesThatSamplesNeedAreReadTogether(t *testing.T) {
	mem := &pagesOf{gone: map[uint64]bool{}}
	s := newSnapshot(mem)
	sample := func(step string, single, atOnce int, numbers ...uint64) {
		t.Helper()
		mem.single, mem.atOnce = 0, 0
		s.reset()
		for range 2 {
			for _, number := range numbers {
				v, err := procmem.Uint64(s, number*pageSize)
				if mem.gone[number] != (err != nil) || err == nil && v != number {
					t.Errorf("%s: page %d: %d, %v", step, number, v, err)
				}
			}
		}
		if mem.single != single || mem.atOnce != atOnce {
			t.Errorf("%s: %d reads of one page and %d of many, want %d and %d", step, mem.single, mem.atOnce, single, atOnce)
		}
	}
	sample("first", 3, 0, 5, 6, 7)
	sample("the same again", 0, 1, 5, 6, 7)
	sample("another one", 1, 1, 5, 8)
	mem.gone[6] = true
	sample("one is gone that is not needed", 0, 2, 5, 7, 8)
	mem.gone[7] = true
	sample("one is gone that is needed", 1, 2, 5, 7, 8)
	sample("something else", 1, 1, 40)
	for range usualFor {
		sample("and that again", 0, 1, 40)
	}
	if len(s.usual) != 1 {
		t.Errorf("%d pages are still usual", len(s.usual))
	}
	mem.refuses = true
	sample("refused", 1, 1, 40)
	sample("not tried again", 1, 0, 40)
}

func TestUsualPagesAreBounded(t *testing.T) {
	mem := &pagesOf{}
	s := newSnapshot(mem)
	for number := uint64(1); number <= 2*maxPages; number++ {
		_, err := procmem.Uint64(s, number*pageSize)
		if (err == nil) != (number <= maxPages) {
			t.Fatalf("page %d: %v", number, err)
		}
	}
	s.add(bpf.Window{Addr: 1 << 40, Data: []byte{1}})
	s.reset()
	if len(s.index)+len(s.windows) != 0 || s.windows[:1][0].Data != nil {
		t.Errorf("%d pages and %d windows are held of a sample that is over", len(s.index), len(s.windows))
	}
	if len(s.usual) != maxUsual {
		t.Errorf("%d usual pages", len(s.usual))
	}
}

// Of a real process, up to the first page that can't be read.
func TestReadManyOfAProcess(t *testing.T) {
	mapped, err := unix.Mmap(-1, 0, 4*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	for i := range mapped {
		mapped[i] = byte(i / pageSize)
	}
	if err := unix.Mprotect(mapped[2*pageSize:3*pageSize], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	self, err := procmem.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	base := uint64(uintptr(unsafe.Pointer(&mapped[0])))
	for _, x := range []struct {
		pages []uint64
		want  int
	}{{[]uint64{0, 1, 3}, 3}, {[]uint64{3, 0, 2, 1}, 2}, {[]uint64{2, 0}, 0}} {
		var list []procmem.Window
		for _, n := range x.pages {
			list = append(list, procmem.Window{Addr: base + n*pageSize, Data: make([]byte, pageSize)})
		}
		filled, err := self.ReadMany(list)
		if err != nil || filled != x.want {
			t.Fatalf("pages %v: %d are read, want %d: %v", x.pages, filled, x.want, err)
		}
		for i := range filled {
			if got := list[i].Data[100]; got != byte(x.pages[i]) {
				t.Errorf("page %d holds %d", x.pages[i], got)
			}
		}
	}
}
