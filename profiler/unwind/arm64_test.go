package unwind

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// nothing is memory that can't be read.
type nothing struct{}

func (nothing) ReadMemory(uint64, []byte) error { return os.ErrNotExist }

// An arm64 stack: a leaf whose return address is in its register, and two
// frame records, one with a signed return address.
func TestARM64Frames(t *testing.T) {
	const code, sp, branch = 0x10000, 0x7ff000000000, 0x94000010
	text, words := make([]byte, 0x1000), make([]byte, 0x100)
	for _, at := range []int{0x200, 0x300, 0x400} {
		binary.LittleEndian.PutUint32(text[at:], branch)
	}
	put := func(off int, v uint64) { binary.LittleEndian.PutUint64(words[off:], v) }
	put(0x40, sp+0x80)
	put(0x48, 0x00ab<<48|code+0x304)
	put(0x80, 0)
	put(0x88, code+0x404)
	var regs stack.Registers
	for n, v := range map[int]uint64{arm64.pc: code + 0x100, arm64.sp: sp, arm64.fp: sp + 0x40, arm64.link: code + 0x204} {
		regs.Set(n, v)
	}
	walk := func() []uint64 {
		u := New(symbol.NewCache(4), os.Getpid(), procmem.Maps{{Start: code, End: code + 0x1000, Read: true, Exec: true}})
		u.arch.Store(&arm64)
		mem := procmem.Overlay{Windows: []procmem.Window{{Addr: code, Data: text}, {Addr: sp, Data: words}}, Under: nothing{}}
		frames, _ := u.Unwind(regs, mem, nil)
		var pcs []uint64
		for _, f := range frames {
			pcs = append(pcs, f.PC)
		}
		return pcs
	}
	if got, want := walk(), []uint64{code + 0x100, code + 0x204, code + 0x304, code + 0x404}; !slices.Equal(got, want) {
		t.Errorf("frames at %#x, want %#x", got, want)
	}
	put(0x48, code+0x308) // behind no call
	if got, want := walk(), []uint64{code + 0x100, code + 0x204}; !slices.Equal(got, want) {
		t.Errorf("frames at %#x past a bad return address, want %#x", got, want)
	}
}
