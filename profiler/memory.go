package profiler

import (
	"errors"

	"github.com/spinguard/spinguard/profiler/procmem"
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
