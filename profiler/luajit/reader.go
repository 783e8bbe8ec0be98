package luajit

import (
	"encoding/binary"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// reader reads words of foreign memory. What can't be read is zero, and zero
// never passes a check: no object lives there, and no frame link is null.
type reader struct {
	mem    procmem.Memory
	strLen uint64 // offset of a string's length; 0: not derived yet
}

func (r reader) bytes(addr uint64, n int) []byte {
	b := make([]byte, n)
	if r.mem == nil || r.mem.ReadMemory(addr, b) != nil {
		return nil
	}
	return b
}

func (r reader) u64(addr uint64) uint64 {
	v, _ := procmem.Uint64(r.mem, addr)
	return v
}

func (r reader) u32(addr uint64) uint32 {
	v, _ := procmem.Uint32(r.mem, addr)
	return v
}

func (r reader) u16(addr uint64) uint16 {
	var b [2]byte
	if r.mem.ReadMemory(addr, b[:]) != nil {
		return 0
	}
	return binary.LittleEndian.Uint16(b[:])
}

func (r reader) u8(addr uint64) uint8 {
	var b [1]byte
	if r.mem.ReadMemory(addr, b[:]) != nil {
		return 0
	}
	return b[0]
}

// partial reads up to n bytes in pieces of 512, and stops at the first piece
// that can't be read.
func (r reader) partial(addr uint64, n int) []byte {
	const piece = 512
	out := make([]byte, 0, n)
	for len(out) < n {
		next := out[len(out):min(len(out)+piece, n)]
		if r.mem.ReadMemory(addr+uint64(len(out)), next) != nil {
			break
		}
		out = out[:len(out)+len(next)]
	}
	return out
}
