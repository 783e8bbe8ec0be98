package symbol

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What a well-made file never exceeds. Everything read from a file is checked
// against its size and these limits before memory is taken for it.
const (
	maxSegments = 512
	maxSections = 16384
	maxSection  = 256 << 20
	maxNames    = 1 << 20 // of section names, in bytes
)

// errELF marks a file that is no usable ELF image.
var errELF = errors.New("no usable ELF image")

// elfFile is a checked view of a 64-bit little-endian ELF file. debug/elf is
// not used for reading: it trusts the counts of the file.
type elfFile struct {
	r        io.ReaderAt
	size     int64
	kind     elf.Type
	machine  elf.Machine
	entry    uint64
	segments []elf.Prog64
	sections []section
}

type section struct {
	elf.Section64
	name string
}

func badELF(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errELF, fmt.Sprintf(format, args...))
}

// parseELF reads the headers of an ELF file of the given size.
func parseELF(r io.ReaderAt, size int64) (*elfFile, error) {
	f := &elfFile{r: r, size: size}
	var head elf.Header64
	if err := f.decode(0, &head); err != nil {
		return nil, badELF("header cut at %d bytes", size)
	}
	if err := checkIdent(head.Ident); err != nil {
		return nil, err
	}
	f.kind, f.machine, f.entry = elf.Type(head.Type), elf.Machine(head.Machine), head.Entry
	if err := f.readSegments(head); err != nil {
		return nil, err
	}
	// Section headers may be missing, cut or wrong: an image runs without
	// them, so they are worth a try and no error.
	f.readSections(head)
	return f, nil
}

func checkIdent(ident [elf.EI_NIDENT]byte) error {
	switch {
	case string(ident[:4]) != elf.ELFMAG:
		return badELF("wrong magic % x", ident[:4])
	case elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64:
		return badELF("not a 64-bit file")
	case elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB:
		return badELF("not a little-endian file")
	}
	return nil
}

func (f *elfFile) readSegments(head elf.Header64) error {
	if head.Phnum == 0 {
		return nil // a debug file may do without
	}
	if head.Phnum > maxSegments || head.Phentsize != uint16(binary.Size(elf.Prog64{})) {
		return badELF("%d program headers of %d bytes", head.Phnum, head.Phentsize)
	}
	segments := make([]elf.Prog64, head.Phnum)
	if err := f.decode(head.Phoff, segments); err != nil {
		return badELF("program headers at %#x are outside of the file", head.Phoff)
	}
	f.segments = segments
	return nil
}

func (f *elfFile) readSections(head elf.Header64) {
	if head.Shnum == 0 || head.Shnum > maxSections || head.Shentsize != uint16(binary.Size(elf.Section64{})) {
		return
	}
	raw := make([]elf.Section64, head.Shnum)
	if f.decode(head.Shoff, raw) != nil || int(head.Shstrndx) >= len(raw) {
		return
	}
	table := raw[head.Shstrndx]
	names, err := f.bytes(table.Off, table.Size, maxNames)
	if err != nil {
		return
	}
	f.sections = make([]section, len(raw))
	for i, s := range raw {
		f.sections[i] = section{s, cstring(names, s.Name)}
	}
}

// decode fills a fixed-size value, or a slice of such, from an offset.
func (f *elfFile) decode(off uint64, v any) error {
	raw, err := f.bytes(off, uint64(binary.Size(v)), maxSection)
	if err != nil {
		return err
	}
	_, err = binary.Decode(raw, binary.LittleEndian, v)
	return err
}

// bytes reads a part of the file, of at most limit bytes.
func (f *elfFile) bytes(off, size, limit uint64) ([]byte, error) {
	if size > limit {
		return nil, badELF("%d bytes where at most %d are reasonable", size, limit)
	}
	if off > uint64(f.size) || size > uint64(f.size)-off {
		return nil, badELF("%d bytes at offset %#x of a file of %d", size, off, f.size)
	}
	buf := make([]byte, size)
	if n, err := f.r.ReadAt(buf, int64(off)); n != len(buf) {
		return nil, fmt.Errorf("%d bytes at offset %#x: %w", size, off, err)
	}
	return buf, nil
}

func (f *elfFile) section(name string) (section, bool) {
	for _, s := range f.sections {
		if s.name == name {
			return s, true
		}
	}
	return section{}, false
}

// cstring returns the zero-terminated text at an offset of a string table.
func cstring(table []byte, off uint32) string {
	if uint64(off) >= uint64(len(table)) {
		return ""
	}
	rest := table[off:]
	for i, c := range rest {
		if c == 0 {
			return string(rest[:i])
		}
		if i == maxName {
			break
		}
	}
	return ""
}
