package symbol

import (
	"debug/elf"
	"fmt"
	"io"
	"path"
	"sync"
	"sync/atomic"
)

// Image is one ELF file: a program, a shared library or the vDSO. It is
// immutable for its users and safe for concurrent use. Symbols are read when
// first asked for. The file behind it is closed when the image is no longer
// reachable.
type Image struct {
	Path string // as the first process that mapped it sees it

	file    *elfFile
	buildID string
	debug   *elfFile // separate debug file, nil if none

	once   sync.Once
	tables []table // in the order in which they are trusted

	named nameMemo

	unwind unwindTables
	goOnce sync.Once
	goTab  *GoTable
}

// newImage reads the headers of an ELF image.
func newImage(name string, r io.ReaderAt, size int64) (*Image, error) {
	f, err := parseELF(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Image{Path: name, file: f, buildID: f.buildID()}, nil
}

// BuildID returns the GNU build id in hex, or "" where the file has none.
func (i *Image) BuildID() string { return i.buildID }

// Machine returns the architecture.
func (i *Image) Machine() elf.Machine { return i.file.machine }

// Entry returns the vaddr at which the program starts, 0 for most libraries.
func (i *Image) Entry() uint64 { return i.file.entry }

// Module returns the base name of the image, such as "nginx" or "[vdso]".
func (i *Image) Module() string { return path.Base(i.Path) }

// Lookup finds an exported symbol, or one of .symtab, by its linkage name and
// returns its vaddr and size. A size may be 0 where the file says so.
func (i *Image) Lookup(name string) (value, size uint64, ok bool) {
	for _, t := range i.symbols() {
		if e, ok := t.lookup(name); ok {
			return e.value, uint64(e.size), true
		}
	}
	return 0, 0, false
}

// Name names the function at a vaddr: its symbol, demangled, if the symbol's
// size covers the address. Otherwise "module+0x<start of the function>" where
// the unwind table tells the function's range, so that the name is the same
// in every run; else "module+0x<vaddr>". All processes that map the image share
// what was named.
func (i *Image) Name(vaddr uint64) string {
	return i.named.ask(vaddr, i.name)
}

func (i *Image) name(vaddr uint64) string {
	for _, t := range i.symbols() {
		if name := t.covering(vaddr); name != "" {
			return demangled(name)
		}
	}
	if t := i.GoTable(); t != nil {
		if f, ok := t.Function(vaddr); ok {
			return f.Name
		}
	}
	if start, _, ok := i.Function(vaddr); ok {
		vaddr = start
	}
	return fmt.Sprintf("%s+%#x", i.Module(), vaddr)
}

// symbols reads the tables once. A table that cannot be read counts as empty:
// names get worse, nothing else breaks.
func (i *Image) symbols() []table {
	i.once.Do(func() {
		guard(func() { i.tables = i.readTables() })
	})
	return i.tables
}

func (i *Image) readTables() []table {
	var tables []table
	add := func(f *elfFile, name string) {
		if t, err := f.symbolTable(name); err == nil && len(t.entries) > 0 {
			tables = append(tables, t)
		}
	}
	add(i.file, ".dynsym")
	add(i.file, ".symtab")
	if i.debug != nil {
		add(i.debug, ".symtab")
	}
	if mini, err := i.file.miniDebug(); err == nil {
		add(mini, ".symtab")
	}
	return tables
}

// guard is the second line of defence: the parsers check what they read, and
// a panic that gets through costs names, not the agent.
func guard(f func()) {
	defer func() {
		if recover() != nil {
			caught.Add(1)
		}
	}()
	f()
}

// caught counts those panics; tests want none.
var caught atomic.Int64
