package symbol

import (
	"debug/elf"
	"encoding/binary"
	"sync"

	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

// unwindTables are read when first asked for.
type unwindTables struct {
	once   sync.Once
	tables []*cfi.Table
}

// UnwindTables returns the image's call frame information: .eh_frame, and
// .debug_frame where there is one (Go programs have only that). Empty where
// there is none that can be read.
func (i *Image) UnwindTables() []*cfi.Table {
	i.unwind.once.Do(func() {
		guard(func() { i.unwind.tables = i.file.unwindTables() })
	})
	return i.unwind.tables
}

// Function returns the range of the function that holds a vaddr, as the
// image's unwind tables give it.
func (i *Image) Function(vaddr uint64) (start, end uint64, ok bool) {
	for _, t := range i.UnwindTables() {
		if start, end, ok := t.FunctionRange(vaddr); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

func (f *elfFile) unwindTables() []*cfi.Table {
	var tables []*cfi.Table
	add := func(data []byte, addr uint64, form cfi.Form) {
		if t, err := cfi.Parse(data, addr, form); err == nil {
			tables = append(tables, t)
		}
	}
	if s, ok := f.section(".eh_frame"); ok {
		if data, err := f.sectionData(s); err == nil {
			add(data, s.Addr, cfi.EHFrame)
		}
	} else if data, addr, ok := f.ehFrameByHeader(); ok {
		add(data, addr, cfi.EHFrame)
	}
	if s, ok := f.section(".debug_frame"); ok {
		if data, err := f.sectionData(s); err == nil {
			add(data, 0, cfi.DebugFrame)
		}
	}
	return tables
}

// ehFrameByHeader finds .eh_frame in a file without section headers, through
// the program header that the C++ runtime uses. Its size is not told: it ends
// with its own end mark, at the latest with its segment.
func (f *elfFile) ehFrameByHeader() ([]byte, uint64, bool) {
	for _, p := range f.segments {
		if elf.ProgType(p.Type) != elf.PT_GNU_EH_FRAME {
			continue
		}
		head, err := f.bytes(p.Off, min(p.Filesz, 8), 8)
		const version, pcRelative4 = 1, 0x1b
		if err != nil || len(head) < 8 || head[0] != version || head[1] != pcRelative4 {
			return nil, 0, false
		}
		addr := p.Vaddr + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(head[4:]))))
		data, ok := f.toSegmentEnd(addr)
		return data, addr, ok
	}
	return nil, 0, false
}

func (f *elfFile) toSegmentEnd(vaddr uint64) ([]byte, bool) {
	for _, p := range f.segments {
		if elf.ProgType(p.Type) != elf.PT_LOAD || vaddr < p.Vaddr || vaddr-p.Vaddr >= p.Filesz {
			continue
		}
		into := vaddr - p.Vaddr
		data, err := f.bytes(p.Off+into, p.Filesz-into, maxSection)
		return data, err == nil
	}
	return nil, false
}
