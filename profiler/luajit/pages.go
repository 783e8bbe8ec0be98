package luajit

import (
	"github.com/spinguard/spinguard/profiler/procmem"
)

const (
	pageSize = 4096
	maxPages = 1024
)

// pages reads each page of a memory once, for a search that follows many
// pointers into the same ones. Beyond maxPages it keeps no more.
type pages struct {
	under procmem.Memory
	kept  map[uint64]*[pageSize]byte // by number; nil: not readable
}

func newPages(under procmem.Memory) *pages {
	return &pages{under: under, kept: map[uint64]*[pageSize]byte{}}
}

// ReadMemory implements procmem.Memory.
func (p *pages) ReadMemory(addr uint64, buf []byte) error {
	for len(buf) > 0 {
		number, at := addr/pageSize, addr%pageSize
		page, known := p.kept[number]
		if !known {
			if len(p.kept) >= maxPages {
				return p.under.ReadMemory(addr, buf)
			}
			page = new([pageSize]byte)
			if p.under.ReadMemory(number*pageSize, page[:]) != nil {
				page = nil
			}
			p.kept[number] = page
		}
		if page == nil { // but maybe a part of it
			return p.under.ReadMemory(addr, buf)
		}
		n := copy(buf, page[at:])
		buf, addr = buf[n:], addr+uint64(n)
	}
	return nil
}
