package cfi

import "encoding/binary"

// reader takes values off a byte slice. After a read beyond the end it is bad
// and every value is zero.
type reader struct {
	data []byte
	off  int
	bad  bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.data)-r.off {
		r.bad = true
		return nil
	}
	b := r.data[r.off : r.off+n]
	r.off += n
	return b
}

func (r *reader) more() bool { return !r.bad && r.off < len(r.data) }

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uleb reads an unsigned LEB128 number; bits beyond 64 are dropped.
func (r *reader) uleb() uint64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := r.u8()
		if r.bad || shift > 70 {
			r.bad = true
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

// sleb reads a signed LEB128 number.
func (r *reader) sleb() int64 {
	var v int64
	for shift := 0; ; {
		b := r.u8()
		if r.bad || shift > 70 {
			r.bad = true
			return 0
		}
		v |= int64(b&0x7f) << shift
		shift += 7
		if b&0x80 == 0 {
			if shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// cstring reads a zero-terminated string of at most 64 bytes.
func (r *reader) cstring() string {
	start := r.off
	for r.u8() != 0 {
		if r.off-start > 64 {
			r.bad = true
		}
	}
	if r.bad {
		return ""
	}
	return string(r.data[start : r.off-1])
}

// Pointer encodings of .eh_frame (DW_EH_PE).
const (
	peAbsolute = 0x00
	peULEB     = 0x01
	peU2       = 0x02
	peU4       = 0x03
	peU8       = 0x04
	peSLEB     = 0x09
	peS2       = 0x0a
	peS4       = 0x0b
	peS8       = 0x0c
	pePCRel    = 0x10
	peOmit     = 0xff

	peFormat = 0x0f
	peBase   = 0xf0
)

// pointer reads an encoded pointer; addr is the vaddr of data[0]. Encodings
// that no linker writes for code addresses make the reader bad.
func (r *reader) pointer(encoding uint8, addr uint64) uint64 {
	at := addr + uint64(r.off)
	v := r.value(encoding)
	switch encoding & peBase {
	case peAbsolute:
		return v
	case pePCRel:
		return at + v
	}
	r.bad = true
	return 0
}

// value reads the number of an encoded pointer, without its base.
func (r *reader) value(encoding uint8) uint64 {
	switch encoding & peFormat {
	case peAbsolute, peU8, peS8:
		return r.u64()
	case peULEB:
		return r.uleb()
	case peU2:
		return uint64(r.u16())
	case peU4:
		return uint64(r.u32())
	case peSLEB:
		return uint64(r.sleb())
	case peS2:
		return uint64(int64(int16(r.u16())))
	case peS4:
		return uint64(int64(int32(r.u32())))
	}
	r.bad = true
	return 0
}
