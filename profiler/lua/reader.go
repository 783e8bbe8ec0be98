package lua

import (
	"encoding/binary"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// reader reads foreign memory within a budget. What can't be read is nil or
// zero, and neither passes a check.
type reader struct {
	mem  procmem.Memory
	left int // reads
}

func (r *reader) block(addr uint64, n int) []byte {
	if r.left -= 1 + n/4096; r.left < 0 || !user(addr) || n <= 0 {
		return nil
	}
	b := make([]byte, n)
	if r.mem.ReadMemory(addr, b) != nil {
		return nil
	}
	return b
}

func (r *reader) spent() bool { return r.left < 0 }

// user says that an address may be one of a user's process.
func user(addr uint64) bool { return addr >= 0x1000 && addr < 1<<47 }

func object(addr uint64) bool { return user(addr) && addr%8 == 0 }

func u64(b []byte, at int) uint64 {
	if at < 0 || at+8 > len(b) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[at:])
}

func i32(b []byte, at int) int {
	if at < 0 || at+4 > len(b) {
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(b[at:])))
}

func u16(b []byte, at int) uint16 {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return binary.LittleEndian.Uint16(b[at:])
}

// Strings have their text behind a header of three words.
const (
	stringText   = 24
	stringShort  = 11 // its length, in a byte
	stringLong   = 16 // its length, in a word
	objectMark   = 8  // type of any object
	closureProto = 24
)

// text reads a string, at most n bytes of it. size is its whole length.
func (r *reader) text(addr uint64, n int) (text string, size int, ok bool) {
	if !object(addr) {
		return "", 0, false
	}
	head := r.block(addr, stringText)
	if head == nil {
		return "", 0, false
	}
	switch head[objectMark] {
	case typeString:
		size = int(head[stringShort])
	case typeLongString:
		size = int(min(u64(head, stringLong), 1<<31))
	default:
		return "", 0, false
	}
	if size == 0 {
		return "", 0, true
	}
	b := r.block(addr+stringText, min(size, n))
	return string(b), size, b != nil
}
