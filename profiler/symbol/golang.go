package symbol

import (
	"encoding/binary"
	"sort"
	"sync"
)

// GoTable is the function table of a Go program (1.18 and later), which
// survives stripping. It keeps the list of functions, 8 bytes each, and the
// functions that are in use; the rest stays in the file. Safe for concurrent
// use.
type GoTable struct {
	file     *elfFile
	base     uint64 // file offset of the table
	size     uint64
	text     uint64 // vaddr that entries are relative to
	names    uint64 // offsets in the table
	pcValues uint64
	records  uint64
	quantum  uint64
	entries  []goEntry // sorted by start; the last one only ends the list

	mu   sync.Mutex
	used map[int]*GoFunction
}

type goEntry struct{ Start, Record uint32 }

// GoFunction is one function of a Go program.
type GoFunction struct {
	Name       string
	Start, End uint64   // vaddrs
	sizes      []goSize // sorted
}

// goSize says how far the stack pointer is below the return address.
type goSize struct {
	end  uint64 // vaddr behind the code that it is about
	size int
}

const (
	goHeaderSize   = 72
	maxGoFunctions = 4 << 20
	maxGoUsed      = 4096
	maxGoName      = 1024
	maxGoSizes     = 4096
)

// GoTable returns the function table of a Go program, or nil.
func (i *Image) GoTable() *GoTable {
	i.goOnce.Do(func() {
		guard(func() { i.goTab = i.readGoTable() })
	})
	return i.goTab
}

func (i *Image) readGoTable() *GoTable {
	f := i.file
	s, ok := f.section(".gopclntab")
	if !ok {
		s, ok = f.section(".data.rel.ro.gopclntab")
	}
	head, err := f.bytes(s.Off, goHeaderSize, goHeaderSize)
	if !ok || err != nil || s.Size < goHeaderSize {
		return nil
	}
	const go118, go120, pointerSize = 0xfffffff0, 0xfffffff1, 8
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(head[8+8*n:]) }
	if magic := binary.LittleEndian.Uint32(head); magic != go118 && magic != go120 || head[7] != pointerSize {
		return nil
	}
	t := &GoTable{
		file: f, base: s.Off, size: s.Size, quantum: uint64(head[6]),
		names: word(3), pcValues: word(6), records: word(7), used: map[int]*GoFunction{},
	}
	functions := word(0)
	if functions == 0 || functions > maxGoFunctions || functions > s.Size/8 {
		return nil
	}
	t.entries = make([]goEntry, functions+1)
	raw, err := t.bytes(t.records, uint64(len(t.entries))*8-4)
	if err != nil {
		return nil
	}
	for n := range t.entries {
		t.entries[n].Start = binary.LittleEndian.Uint32(raw[8*n:])
		if n < len(t.entries)-1 {
			t.entries[n].Record = binary.LittleEndian.Uint32(raw[8*n+4:])
		}
	}
	if t.text, ok = i.goText(t, word(2)); !ok {
		return nil
	}
	return t
}

// goText finds the address that the table counts from: its symbol, the
// table's own word (until Go 1.25, and where nothing relocates it) or the
// start of .text, where the program's entry must then be a Go function: the
// external linker puts C code first.
func (i *Image) goText(t *GoTable, stored uint64) (uint64, bool) {
	if v, _, ok := i.Lookup("runtime.text"); ok {
		return v, true
	}
	if stored != 0 {
		return stored, true
	}
	s, ok := i.file.section(".text")
	if !ok {
		return 0, false
	}
	start := i.file.entry - s.Addr
	n := sort.Search(len(t.entries), func(n int) bool { return uint64(t.entries[n].Start) >= start })
	return s.Addr, n < len(t.entries) && uint64(t.entries[n].Start) == start
}

// bytes reads a part of the table.
func (t *GoTable) bytes(off, size uint64) ([]byte, error) {
	if off > t.size || size > t.size-off {
		return nil, badELF("Go function table: %d bytes at %#x of %d", size, off, t.size)
	}
	return t.file.bytes(t.base+off, size, maxSection)
}

// upTo reads at most size bytes.
func (t *GoTable) upTo(off, size uint64) []byte {
	if off >= t.size {
		return nil
	}
	raw, err := t.bytes(off, min(size, t.size-off))
	if err != nil {
		return nil
	}
	return raw
}

// Function returns the function that holds a vaddr. The result is shared and
// must not be changed.
func (t *GoTable) Function(vaddr uint64) (*GoFunction, bool) {
	off := vaddr - t.text
	n := sort.Search(len(t.entries), func(n int) bool { return uint64(t.entries[n].Start) > off }) - 1
	if n < 0 || n == len(t.entries)-1 {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.used[n]
	if f == nil {
		if len(t.used) == maxGoUsed {
			clear(t.used)
		}
		f = t.read(n)
		t.used[n] = f
	}
	return f, f.Name != ""
}

// read decodes a function's record: entry, name, arguments, deferreturn, and
// the table of stack sizes, each of four bytes.
func (t *GoTable) read(n int) *GoFunction {
	f := &GoFunction{Start: t.text + uint64(t.entries[n].Start), End: t.text + uint64(t.entries[n+1].Start)}
	raw, err := t.bytes(t.records+uint64(t.entries[n].Record), 20)
	if err != nil {
		return f
	}
	name := binary.LittleEndian.Uint32(raw[4:])
	f.Name = cstring(t.upTo(t.names+uint64(name), maxGoName), 0)
	f.readSizes(t.upTo(t.pcValues+uint64(binary.LittleEndian.Uint32(raw[16:])), maxGoSizes*4), t.quantum)
	return f
}

// readSizes decodes pairs of variable-length numbers: change of the size,
// zigzag, and length of the code that has it. A zero change ends the list,
// but for the first pair.
func (f *GoFunction) readSizes(raw []byte, quantum uint64) {
	pc, size := f.Start, -1
	for len(f.sizes) < maxGoSizes && pc < f.End {
		change, n := binary.Uvarint(raw)
		if n <= 0 || change == 0 && len(f.sizes) > 0 {
			return
		}
		length, m := binary.Uvarint(raw[n:])
		if m <= 0 {
			return
		}
		raw = raw[n+m:]
		size += int(int32(uint32(change)>>1) ^ -int32(change&1))
		pc += length * quantum
		f.sizes = append(f.sizes, goSize{pc, size})
	}
}

// StackSize returns how many bytes lie between the stack pointer and the
// return address at a vaddr of the function.
func (f *GoFunction) StackSize(vaddr uint64) (int, bool) {
	i := sort.Search(len(f.sizes), func(i int) bool { return f.sizes[i].end > vaddr })
	if i == len(f.sizes) || f.sizes[i].size < 0 {
		return 0, false
	}
	return f.sizes[i].size, true
}
