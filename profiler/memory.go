package profiler

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/unwind"
)

const (
	pageSize = 4096
	maxPages = 256 // of live memory, for one sample
)

var errUnreadable = errors.New("memory is not readable")

// snapshot is the memory of a process as one sample sees it: the copied
// windows, and around them the live memory, of which each page is read once.
// Walking a Lua stack follows some hundred pointers into a few dozen pages.
// A snapshot is reused from sample to sample; goroutines may not share it.
type snapshot struct {
	windows []procmem.Window
	under   procmem.Memory
	index   map[uint64]*[pageSize]byte // by page number; nil: not readable
	free    []*[pageSize]byte
}

func newSnapshot(under procmem.Memory) *snapshot {
	return &snapshot{under: under, index: map[uint64]*[pageSize]byte{}}
}

// reset forgets the last sample.
func (s *snapshot) reset() {
	s.windows = s.windows[:0]
	for _, page := range s.index {
		if page != nil {
			s.free = append(s.free, page)
		}
	}
	clear(s.index)
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
		page := s.page(addr / pageSize)
		if page == nil {
			return errUnreadable
		}
		n := copy(buf, page[addr%pageSize:])
		buf, addr = buf[n:], addr+uint64(n)
	}
	return nil
}

func (s *snapshot) page(number uint64) *[pageSize]byte {
	if page, ok := s.index[number]; ok {
		return page
	}
	if len(s.index) >= maxPages {
		return nil
	}
	var page *[pageSize]byte
	if n := len(s.free); n > 0 {
		page, s.free = s.free[n-1], s.free[:n-1]
	} else {
		page = new([pageSize]byte)
	}
	if s.under.ReadMemory(number*pageSize, page[:]) != nil {
		s.free = append(s.free, page)
		page = nil
	}
	s.index[number] = page
	return page
}

// rest is the live memory that a walk of the machine stack may read besides
// the copied windows: code, which stays as it is, and the middle of a very deep
// stack, if its two ends were copied.
type rest struct {
	modules *modules
	under   procmem.Memory
	windows int            // how many were copied
	from    procmem.Window // the copied window below the middle
	end     uint64         // of the middle, 0: there is none
	used    bool           // the middle was read
}

var errNotCopied = errors.New("it was not copied")

// newRest takes the windows of one stack, from the leaf on.
func newRest(m *modules, under procmem.Memory, windows []procmem.Window) *rest {
	r := &rest{modules: m, under: under, windows: len(windows)}
	if n := len(windows); n > 1 && !m.switches && windows[n-1].Addr > windows[n-2].Addr {
		r.from, r.end = windows[n-2], windows[n-1].Addr
	}
	return r
}

// middle returns the first address of the middle.
func (r *rest) middle() uint64 { return r.from.Addr + uint64(len(r.from.Data)) }

// ReadMemory implements procmem.Memory.
func (r *rest) ReadMemory(addr uint64, buf []byte) error {
	last := addr + uint64(len(buf)) - 1
	switch {
	case len(buf) == 0:
		return nil
	case r.modules.isCode(addr) && r.modules.isCode(last):
	case r.end != 0 && addr >= r.middle() && last < r.end && last >= addr:
		r.used = true
	default:
		return errNotCopied
	}
	return r.under.ReadMemory(addr, buf)
}

// moved says that the middle was read, and that the thread may have returned
// to it meanwhile: then it has written to the window below it.
func (r *rest) moved() bool {
	if !r.used {
		return false
	}
	const enough = 16 << 10
	was := r.from.Data[max(0, len(r.from.Data)-enough):]
	is := make([]byte, len(was))
	return r.under.ReadMemory(r.middle()-uint64(len(was)), is) != nil || !bytes.Equal(was, is)
}

// cut leaves the frames below the middle.
func (r *rest) cut(frames []unwind.Frame) ([]unwind.Frame, string) {
	for i := range frames {
		if frames[i].CFA >= r.middle() {
			return frames[:i+1], fmt.Sprintf("frame %d: cut window at %#x", i, r.middle())
		}
	}
	return frames, ""
}
