package unwind

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// placed makes the executable mapping of a file at an address of our choice,
// in a process that has it nowhere: the unwinder cannot tell.
func placed(t testing.TB, path string, base uint64) (procmem.Mapping, bool) {
	t.Helper()
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return procmem.Mapping{}, false
	}
	return procmem.Mapping{
		Start: base, End: base + 0x400000, Offset: 0, Read: true, Exec: true,
		Dev:   fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev)),
		Inode: st.Ino, Path: path,
	}, true
}

// FuzzUnwind walks hostile stacks and registers through real programs.
func FuzzUnwind(f *testing.F) {
	var maps procmem.Maps
	base := uint64(0x10000000)
	for _, path := range []string{"/usr/sbin/nginx", luaLibrary, "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libgcc_s.so.1"} {
		if m, ok := placed(f, path, base); ok {
			maps = append(maps, m)
		}
		base += 0x10000000
	}
	maps = append(maps, procmem.Mapping{Start: base, End: base + 0x10000, Read: true, Exec: true})
	unwinder := New(symbol.NewCache(8), os.Getpid(), maps)
	const sp = 0x7fff00000000
	code := func(pc uint64) (int, bool) { return int(pc & 0xfff), pc&1 == 0 }
	word := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	f.Add(uint64(0x10031000), uint64(0), append(word(0x10032000), word(0x30040000)...))
	f.Add(uint64(0x20009e80), uint64(sp), append(make([]byte, 72), word(0x10032000)...))
	f.Add(base, uint64(sp+8), append(word(sp+32), word(base+16)...))
	f.Fuzz(func(t *testing.T, pc, fp uint64, data []byte) {
		var regs stack.Registers
		regs.Set(stack.RIP, pc)
		regs.Set(stack.RSP, sp)
		if fp != 0 {
			regs.Set(stack.RBP, fp)
		}
		frames, _ := unwinder.Unwind(regs, procmem.Window{Addr: sp, Data: data}, code)
		if len(frames) == 0 || len(frames) > MaxFrames {
			t.Errorf("%d frames", len(frames))
		}
		for i := 1; i < len(frames); i++ {
			was, is := frames[i-1].Registers.SP(), frames[i].Registers.SP()
			if is <= was && frames[i].LeftOut == 0 && !frames[i-1].Signal && frames[i-1].Found != FramePointer {
				t.Errorf("frame %d: stack went from %#x to %#x", i, was, is)
			}
		}
	})
}
