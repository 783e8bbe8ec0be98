package symbol

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
)

const (
	maxName      = 16 << 10 // bytes of one symbol's name
	symbolSize   = 24       // bytes of one entry in the file
	functionFlag = 1 << 31
)

// entry is one defined symbol, small because a program may have a million.
type entry struct {
	value uint64
	size  uint32 // saturated
	name  uint32 // offset in the string table; top bit: it is code
}

func (e entry) nameOffset() uint32 { return e.name &^ functionFlag }
func (e entry) isCode() bool       { return e.name&functionFlag != 0 }

// table is one symbol table of a file, sorted by value.
type table struct {
	entries []entry
	names   []byte
}

// symbolTable reads the symbols of a section such as ".dynsym". A missing
// section gives an empty table.
func (f *elfFile) symbolTable(name string) (table, error) {
	s, ok := f.section(name)
	if !ok || uint64(s.Link) >= uint64(len(f.sections)) {
		return table{}, nil
	}
	raw, err := f.sectionData(s)
	if err != nil {
		return table{}, err
	}
	names, err := f.sectionData(f.sections[s.Link])
	if err != nil {
		return table{}, err
	}
	return newTable(raw, names), nil
}

func newTable(raw, names []byte) table {
	t := table{names: names, entries: make([]entry, 0, len(raw)/symbolSize)}
	for ; len(raw) >= symbolSize; raw = raw[symbolSize:] {
		if e, ok := decodeSymbol(raw); ok {
			t.entries = append(t.entries, e)
		}
	}
	slices.SortFunc(t.entries, t.compare)
	return t
}

func decodeSymbol(raw []byte) (entry, bool) {
	e := entry{name: binary.LittleEndian.Uint32(raw), value: binary.LittleEndian.Uint64(raw[8:])}
	size := binary.LittleEndian.Uint64(raw[16:])
	e.size = uint32(min(size, 1<<32-1))
	if elf.SectionIndex(binary.LittleEndian.Uint16(raw[6:])) == elf.SHN_UNDEF || e.isCode() {
		return e, false
	}
	switch elf.ST_TYPE(raw[4]) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC, elf.STT_NOTYPE:
		e.name |= functionFlag
	case elf.STT_OBJECT:
	default:
		return e, false // sections, files, thread-local offsets
	}
	return e, true
}

// compare sorts by value, and gives the same order of aliases in every run:
// the plainest name first.
func (t *table) compare(a, b entry) int {
	if c := cmp.Compare(a.value, b.value); c != 0 {
		return c
	}
	an, bn := cstring(t.names, a.nameOffset()), cstring(t.names, b.nameOffset())
	return cmp.Or(cmp.Compare(underscores(an), underscores(bn)), cmp.Compare(len(an), len(bn)), cmp.Compare(an, bn))
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// lookup finds a symbol by name.
func (t *table) lookup(name string) (entry, bool) {
	for _, e := range t.entries {
		off := uint64(e.nameOffset())
		end := off + uint64(len(name))
		if end < uint64(len(t.names)) && t.names[end] == 0 && string(t.names[off:end]) == name {
			return e, true
		}
	}
	return entry{}, false
}

// nested is how many symbols that start below an address are asked whether
// they hold it: small labels may lie inside a large function.
const nested = 32

// covering returns the name of the innermost code symbol whose size covers
// the address, or "".
func (t *table) covering(vaddr uint64) string {
	i, _ := slices.BinarySearchFunc(t.entries, vaddr, func(e entry, v uint64) int {
		if e.value <= v {
			return -1
		}
		return 1
	})
	best := -1
	for j := i - 1; j >= 0 && j >= i-nested; j-- {
		e := t.entries[j]
		if best >= 0 && e.value < t.entries[best].value {
			break
		}
		if e.isCode() && vaddr-e.value < uint64(e.size) {
			best = j // go on: the first of several aliases is the plainest
		}
	}
	if best < 0 {
		return ""
	}
	return cstring(t.names, t.entries[best].nameOffset())
}
