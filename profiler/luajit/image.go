package luajit

import (
	"bytes"
	"encoding/binary"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// functionRange asks the unwind table of the mapped image which function holds
// the address. The interpreter is one function there, however large, in
// stripped builds too: a program can't throw errors through it otherwise.
func functionRange(r reader, maps procmem.Maps, addr uint64) (lo, hi uint64, ok bool) {
	hdr, ok := unwindHeader(r, maps, addr)
	if !ok {
		return 0, 0, false
	}
	h := r.bytes(hdr, 12)
	// Version 1, 4-byte count, a table of 4-byte offsets from the header: the
	// only form that linkers write.
	if h == nil || h[0] != 1 || h[2] != 0x03 || h[3] != 0x3b {
		return 0, 0, false
	}
	count := binary.LittleEndian.Uint32(h[8:])
	if h[1]&0x0f == 0x0c || h[1]&0x0f == 0x04 || count == 0 || count > 1<<24 {
		return 0, 0, false
	}
	entry := func(i uint32) (loc, fde uint64) {
		b := r.bytes(hdr+12+uint64(i)*8, 8)
		if b == nil {
			return 0, 0
		}
		at := func(b []byte) uint64 { return hdr + uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }
		return at(b), at(b[4:])
	}
	first, last := uint32(0), count // the wanted entry is in [first, last)
	for last-first > 1 {
		mid := first + (last-first)/2
		if loc, _ := entry(mid); loc <= addr {
			first = mid
		} else {
			last = mid
		}
	}
	loc, fde := entry(first)
	size := fdeSize(r, fde, loc)
	return loc, loc + size, loc <= addr && addr-loc < size
}

// fdeSize reads the length of the function that an FDE describes, once its
// start proves how the addresses in it are written.
func fdeSize(r reader, fde, loc uint64) uint64 {
	if fde+8+uint64(int64(int32(r.u32(fde+8)))) == loc {
		return uint64(r.u32(fde + 12))
	}
	if r.u64(fde+8) == loc {
		return r.u64(fde + 16)
	}
	return 0
}

// unwindHeader finds the .eh_frame_hdr of the image that is mapped at addr.
func unwindHeader(r reader, maps procmem.Maps, addr uint64) (uint64, bool) {
	start, ok := imageStart(maps, addr)
	if !ok {
		return 0, false
	}
	const (
		headerSize, entrySize = 64, 56
		ptLoad, ptEhFrame     = 1, 0x6474e550
	)
	eh := r.bytes(start, headerSize)
	if !bytes.HasPrefix(eh, []byte("\x7fELF\x02\x01")) {
		return 0, false
	}
	le := binary.LittleEndian
	if le.Uint16(eh[54:]) != entrySize || le.Uint64(eh[32:]) > 1<<16 {
		return 0, false
	}
	table := r.bytes(start+le.Uint64(eh[32:]), min(int(le.Uint16(eh[56:])), 64)*entrySize)
	var bias, hdr uint64
	var haveBias, haveHdr bool
	for ; len(table) >= entrySize; table = table[entrySize:] {
		offset, vaddr := le.Uint64(table[8:]), le.Uint64(table[16:])
		switch le.Uint32(table) {
		case ptLoad:
			if offset == 0 {
				bias, haveBias = start-vaddr&^0xfff, true
			}
		case ptEhFrame:
			hdr, haveHdr = vaddr, true
		}
	}
	return bias + hdr, haveBias && haveHdr
}

// imageStart returns the address of the image's first byte: the mapping of
// the same file, at offset 0, nearest below.
func imageStart(maps procmem.Maps, addr uint64) (uint64, bool) {
	code, ok := maps.Find(addr)
	if !ok {
		return 0, false
	}
	var start uint64
	ok = false
	for _, m := range maps {
		if m.Start > addr {
			break
		}
		if m.Offset == 0 && m.Inode == code.Inode && m.Dev == code.Dev && m.Path == code.Path {
			start, ok = m.Start, true
		}
	}
	return start, ok
}
