package luajit

import (
	"encoding/binary"
	"strings"
	"sync"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const (
	scanPiece = 1 << 20
	scanMax   = 16 << 30 // no process is searched beyond this
	scanHits  = 256      // virtual machines in one process
)

// candidate is a place that looks like the start of a GG_State: the main
// lua_State with the global_State behind it.
type candidate struct {
	thread, global uint64
	gc32           bool
}

// scan searches the writable private memory. A GG_State proves itself: the
// thread points to the global state that lies directly behind it, and that
// points back.
func scan(mem procmem.Memory, maps procmem.Maps) []candidate {
	var found []candidate
	var total uint64
	buf := scanBuffers.Get().(*[scanPiece]byte)
	defer scanBuffers.Put(buf)
	for _, m := range maps {
		if !m.Read || !m.Write || m.Shared || !heapLike(m) {
			continue
		}
		if total += m.End - m.Start; total > scanMax || len(found) >= scanHits {
			break
		}
		found = append(found, scanMapping(mem, m, buf[:])...)
	}
	return found
}

func heapLike(m procmem.Mapping) bool {
	return m.Inode == 0 && (m.Path == "" || m.Path == "[heap]" || strings.HasPrefix(m.Path, "[anon"))
}

// scanBuffers are shared: many workers are opened one after the other.
var scanBuffers = sync.Pool{New: func() any { return new([scanPiece]byte) }}

func scanMapping(mem procmem.Memory, m procmem.Mapping, buf []byte) []candidate {
	var found []candidate
	for at := m.Start; at < m.End; at += scanPiece {
		b := buf[:min(scanPiece, m.End-at)]
		if mem.ReadMemory(at, b) != nil {
			found = append(found, scanPages(mem, at, b)...)
			continue
		}
		found = append(found, scanBytes(mem, at, b)...)
	}
	return found
}

// scanPages goes on behind pages that can't be read.
func scanPages(mem procmem.Memory, at uint64, buf []byte) []candidate {
	const page = 4096
	var found []candidate
	for off := 0; off+page <= len(buf); off += page {
		if b := buf[off : off+page]; mem.ReadMemory(at+uint64(off), b) == nil {
			found = append(found, scanBytes(mem, at+uint64(off), b)...)
		}
	}
	return found
}

// scanBytes looks for glref, which lies 16 bytes into a thread. A thread that
// straddles two pieces is found by its glref all the same.
func scanBytes(mem procmem.Memory, at uint64, b []byte) []candidate {
	var found []candidate
	r := reader{mem: mem}
	for off := 0; off+8 <= len(b); off += 8 {
		word := binary.LittleEndian.Uint64(b[off:])
		thread := at + uint64(off) - 0x10
		if size := word - thread; size >= minThread && size <= maxThread && size&7 == 0 && mayBeThread(b, off) {
			if c := (candidate{thread: thread, global: word}); wellFormed(r, c) {
				found = append(found, c)
			}
		}
		if at < 1<<32 {
			found = append(found, scanGC32(r, at+uint64(off), word)...)
		}
	}
	return found
}

// mayBeThread looks at the head of a thread by its glref at off, as far as the
// piece holds it: most words that point a little ahead are no glref, and a look
// at them costs no read of the process.
func mayBeThread(b []byte, off int) bool {
	return off < 0x10 || b[off-0x10+9] == tagThread && b[off-0x10+10] == ffC
}

// Bounds for the size of a lua_State with 64-bit references.
const (
	minThread = 0x58
	maxThread = 0x100
)

func wellFormed(r reader, c candidate) bool {
	head := r.bytes(c.thread, 16)
	if head == nil || head[9] != tagThread || head[10] != ffC {
		return false
	}
	g := r.partial(c.global, 0x400)
	for off := 0; off+8 <= len(g); off += 8 {
		if binary.LittleEndian.Uint64(g[off:]) == c.thread {
			return true
		}
	}
	return false
}

// scanGC32 recognises builds with 32-bit references, to refuse them by name.
// Their glref lies 8 bytes into the thread.
func scanGC32(r reader, at uint64, word uint64) []candidate {
	thread := at - 8
	global := word & 0xffffffff
	if size := global - thread; thread&7 != 0 || size < 0x30 || size > 0x80 {
		return nil
	}
	head := r.bytes(thread, 8)
	if head == nil || head[5] != tagThread || head[6] != ffC {
		return nil
	}
	g := r.partial(global, 0x200)
	for off := 0; off+4 <= len(g); off += 4 {
		if uint64(binary.LittleEndian.Uint32(g[off:])) == thread {
			return []candidate{{thread: thread, global: global, gc32: true}}
		}
	}
	return nil
}
