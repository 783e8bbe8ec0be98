package luajit

import (
	"encoding/binary"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// reader reads words of foreign memory. What can't be read is zero, and zero
// never passes a check: no object lives there, and no frame link is null.
type reader struct {
	mem    procmem.Memory
	strLen uint64  // offset of a string's length; 0: not derived yet
	budget *budget // nil: no bound
}

// budget bounds the work of one walk: foreign memory may hold anything, and
// structures without an end.
type budget struct{ left int }

// walkBudget is about a hundred times what deep stacks cost.
const walkBudget = 200_000

// spend takes the cost of n bytes from the budget, and says whether it had it.
func (r reader) spend(n int) bool {
	if r.budget == nil {
		return true
	}
	r.budget.left -= 1 + n/256
	return r.budget.left >= 0
}

// spent says that the budget is used up.
func (r reader) spent() bool { return r.budget != nil && r.budget.left < 0 }

func (r reader) read(addr uint64, buf []byte) bool {
	return r.mem != nil && r.spend(len(buf)) && r.mem.ReadMemory(addr, buf) == nil
}

func (r reader) bytes(addr uint64, n int) []byte {
	if !r.spend(0) {
		return nil
	}
	if b := make([]byte, n); r.read(addr, b) {
		return b
	}
	return nil
}

func (r reader) u64(addr uint64) uint64 {
	var b [8]byte
	if !r.read(addr, b[:]) {
		return 0
	}
	return le64(b[:])
}

func (r reader) u32(addr uint64) uint32 {
	var b [4]byte
	if !r.read(addr, b[:]) {
		return 0
	}
	return binary.LittleEndian.Uint32(b[:])
}

func (r reader) u8(addr uint64) uint8 {
	var b [1]byte
	if !r.read(addr, b[:]) {
		return 0
	}
	return b[0]
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

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
