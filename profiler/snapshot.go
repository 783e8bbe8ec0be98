package profiler

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
)

const (
	pageSize = 4096
	maxPages = 256 // of live memory, for one sample
	maxUsual = 64  // of these, read ahead in one go
	usualFor = 3   // samples that a page is read ahead for, from the last that needed it
)

var errUnreadable = errors.New("memory is not readable")

// snapshot is the memory of a process as one sample sees it: the copied
// windows, and around them the live memory, of which each page is read once.
// Walking a Lua stack follows some hundred pointers into a few dozen pages, and
// the next sample follows most of them again: so the pages that samples needed
// of late are read together, once the first of them is needed, which takes one
// system call instead of dozens. A snapshot is reused from sample to sample;
// goroutines may not share it. The pages themselves all snapshots share, since a
// host has many workers, and few of them are looked at at a time.
type snapshot struct {
	windows []procmem.Window
	under   procmem.Memory
	many    manyReader       // nil: under is none, or the kernel refuses it
	index   map[uint64]*page // by page number; nil: not readable

	ahead bool             // the usual pages were read for this sample
	usual map[uint64]uint8 // for how many samples more they are
	batch []procmem.Window // of readAhead
}

type page struct {
	used bool
	data [pageSize]byte
}

// freePages are those of no snapshot.
var freePages = sync.Pool{New: func() any { return new(page) }}

func takePage() *page {
	p := freePages.Get().(*page)
	p.used = false
	return p
}

// manyReader is a memory that can be read at many places in one go.
type manyReader interface {
	ReadMany([]procmem.Window) (filled int, err error)
}

func newSnapshot(under procmem.Memory) *snapshot {
	s := &snapshot{under: under, index: map[uint64]*page{}, usual: map[uint64]uint8{}}
	s.many, _ = under.(manyReader)
	return s
}

// reset forgets the last sample and gives back its pages, but remembers which
// of them it needed.
func (s *snapshot) reset() {
	if len(s.index)+len(s.windows) == 0 {
		return // that was done already
	}
	for number := range s.usual {
		if s.usual[number]--; s.usual[number] == 0 {
			delete(s.usual, number)
		}
	}
	for number, p := range s.index {
		if p == nil {
			delete(s.usual, number)
			continue
		}
		if _, known := s.usual[number]; p.used && (known || len(s.usual) < maxUsual) {
			s.usual[number] = usualFor
		}
		freePages.Put(p)
	}
	clear(s.index)
	clear(s.windows)
	clear(s.batch)
	s.windows, s.batch, s.ahead = s.windows[:0], s.batch[:0], false
}

// add makes a copied window part of the snapshot, and one with the window
// before it if it begins where that ends.
func (s *snapshot) add(w bpf.Window) {
	if len(w.Data) == 0 {
		return
	}
	if n := len(s.windows); n > 0 && s.windows[n-1].Addr+uint64(len(s.windows[n-1].Data)) == w.Addr {
		before := &s.windows[n-1]
		before.Data = append(before.Data[:len(before.Data):len(before.Data)], w.Data...)
		return
	}
	s.windows = append(s.windows, procmem.Window(w))
}

// ReadMemory implements procmem.Memory.
func (s *snapshot) ReadMemory(addr uint64, buf []byte) error {
	for i := range s.windows {
		w := &s.windows[i]
		if off := addr - w.Addr; addr >= w.Addr && off < uint64(len(w.Data)) && uint64(len(buf)) <= uint64(len(w.Data))-off {
			copy(buf, w.Data[off:])
			return nil
		}
	}
	for len(buf) > 0 {
		p := s.page(addr / pageSize)
		if p == nil {
			return errUnreadable
		}
		n := copy(buf, p.data[addr%pageSize:])
		buf, addr = buf[n:], addr+uint64(n)
	}
	return nil
}

func (s *snapshot) page(number uint64) *page {
	if !s.ahead {
		s.ahead = true
		s.readAhead()
	}
	p, ok := s.index[number]
	if !ok {
		if len(s.index) >= maxPages {
			return nil
		}
		p = takePage()
		if s.under.ReadMemory(number*pageSize, p.data[:]) != nil {
			freePages.Put(p)
			p = nil
		}
		s.index[number] = p
	}
	if p != nil {
		p.used = true
	}
	return p
}

// readAhead reads the usual pages. What can't be read any more is no longer
// usual, and read again only if it is needed.
func (s *snapshot) readAhead() {
	if s.many == nil || len(s.usual) == 0 {
		return
	}
	s.batch = s.batch[:0]
	pages := make([]*page, 0, len(s.usual))
	for _, number := range slices.Sorted(maps.Keys(s.usual)) {
		p := takePage()
		pages = append(pages, p)
		s.batch = append(s.batch, procmem.Window{Addr: number * pageSize, Data: p.data[:]})
	}
	const tries = 4
	rest, left := s.batch, pages
	for range tries {
		n, err := s.many.ReadMany(rest)
		if err != nil {
			s.many = nil
			break
		}
		for i := range n {
			s.index[rest[i].Addr/pageSize] = left[i]
		}
		if n == len(rest) {
			return
		}
		delete(s.usual, rest[n].Addr/pageSize)
		freePages.Put(left[n])
		if rest, left = rest[n+1:], left[n+1:]; len(rest) == 0 {
			return
		}
	}
	for _, p := range left {
		freePages.Put(p)
	}
}

// Instant reads the process's memory as the sample saw it that was understood
// last: what was copied wins, and what is read of the live memory besides is
// read once. It is good until Release or until the next sample is understood,
// and not for who waits for a change.
func (p *Process) Instant() procmem.Memory { return instant{p} }

// Release gives back the memory that Instant reads. Who watches many processes
// calls it once done with a sample, or holds some hundred kilobytes of each.
func (p *Process) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.reset()
}

// Held returns how many pages and windows of the last sample are held.
func (p *Process) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.view.index) + len(p.view.windows)
}

type instant struct{ p *Process }

// ReadMemory implements procmem.Memory.
func (i instant) ReadMemory(addr uint64, buf []byte) error {
	i.p.mu.Lock()
	defer i.p.mu.Unlock()
	err := i.p.view.ReadMemory(addr, buf)
	if err != nil && len(i.p.view.index) >= maxPages {
		return i.p.mem.ReadMemory(addr, buf) // no longer kept
	}
	return err
}
