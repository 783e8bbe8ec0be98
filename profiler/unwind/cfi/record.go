package cfi

// cie is what the functions of a compilation unit have in common.
type cie struct {
	codeAlign    uint64
	dataAlign    int64
	returnReg    uint8
	pointers     uint8 // how code addresses are encoded
	augmented    bool  // records carry a length of augmentation data
	signal       bool  // the frames are those of signal trampolines
	instructions []byte
}

// record is the span of one entry in the section.
type record struct {
	body    int    // offset of what follows the length
	end     int    // offset behind the entry
	id      uint32 // CIE mark or the way to the CIE
	content int    // offset of what follows the id
}

// recordAt reads the frame of the entry at an offset. False: the end, or a
// length that cannot be.
func (t *Table) recordAt(off int) (record, bool) {
	r := reader{data: t.data, off: off}
	length := uint64(r.u32())
	if length == 0xffffffff {
		length = r.u64()
	}
	if r.bad || length < 4 || length > uint64(len(t.data)-r.off) {
		return record{}, false
	}
	rec := record{body: r.off, end: r.off + int(length)}
	rec.id = r.u32()
	rec.content = r.off
	return rec, true
}

func (t *Table) isCIE(rec record) bool {
	if t.form == DebugFrame {
		return rec.id == 0xffffffff
	}
	return rec.id == 0
}

// cieOf returns where the CIE of a function's record starts.
func (t *Table) cieOf(rec record) (int, bool) {
	off := int64(rec.id)
	if t.form == EHFrame {
		off = int64(rec.body) - off
	}
	return int(off), off >= 0 && off < int64(len(t.data))
}

// parseCIE reads the CIE that starts at an offset.
func (t *Table) parseCIE(off int) (cie, bool) {
	rec, ok := t.recordAt(off)
	if !ok || !t.isCIE(rec) {
		return cie{}, false
	}
	r := reader{data: t.data[:rec.end], off: rec.content}
	version := r.u8()
	augmentation := r.cstring()
	if version == 4 {
		r.take(2) // address and segment size
	}
	c := cie{codeAlign: r.uleb(), dataAlign: r.sleb(), pointers: peAbsolute}
	returnReg := uint64(0)
	if version == 1 {
		returnReg = uint64(r.u8())
	} else {
		returnReg = r.uleb()
	}
	if r.bad || returnReg >= Registers || version != 1 && version != 3 && version != 4 {
		return cie{}, false
	}
	c.returnReg = uint8(returnReg)
	if !c.augment(&r, augmentation) {
		return cie{}, false
	}
	c.instructions = r.data[r.off:]
	return c, true
}

// augment reads the augmentation data that the letters announce.
func (c *cie) augment(r *reader, letters string) bool {
	if letters == "" {
		return true
	}
	if letters[0] != 'z' {
		return false
	}
	c.augmented = true
	length := r.uleb()
	if r.bad || length > uint64(len(r.data)-r.off) {
		return false
	}
	end := r.off + int(length)
	for _, letter := range letters[1:] {
		switch letter {
		case 'R':
			c.pointers = r.u8()
		case 'P':
			r.value(r.u8())
		case 'L':
			r.u8()
		case 'S':
			c.signal = true
		case 'B', 'G': // pointer authentication with key B, memory tags: no data
		default:
			return false
		}
	}
	if r.bad || r.off > end {
		return false
	}
	r.off = end
	return true
}

// function is one FDE: a code range and where its rules are.
type function struct {
	start uint64
	size  uint32
	off   uint32 // of the record
}

// parseFunction reads the range of a function's record.
func (t *Table) parseFunction(rec record, c *cie) (start, size uint64, rest reader) {
	r := reader{data: t.data[:rec.end], off: rec.content}
	start = r.pointer(c.pointers, t.addr)
	size = r.value(c.pointers)
	if c.augmented {
		n := r.uleb()
		if n > uint64(len(r.data)) {
			r.bad = true
			n = 0
		}
		r.take(int(n))
	}
	return start, size, r
}
