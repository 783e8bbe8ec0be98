package symbol

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"
)

// Kernel names kernel addresses from /proc/kallsyms, which is read when first
// asked for. It keeps function names only, about 2 MB for a usual kernel.
// Safe for concurrent use; the zero value is ready.
type Kernel struct {
	opening sync.Once
	file    *os.File // until it is read
	once    sync.Once
	funcs   kernelTable
}

const (
	kallsyms         = "/proc/kallsyms"
	maxKernelSymbols = 400_000
	maxKernelNames   = 16 << 20
	maxKernelGap     = 64 << 10 // bytes of the last function before a hole
	lastOfModule     = 1 << 31  // flag in kernelFunc.name
	kernelPage       = 4 << 10
)

// kernelTable is sorted by address; addresses are kept as distances from the
// lowest one.
type kernelTable struct {
	base  uint64
	funcs []kernelFunc
	names []byte
}

type kernelFunc struct {
	offset uint32 // from base
	name   uint32 // offset in names, zero-terminated; top bit: the next one lies in another module
}

// Name returns the kernel function at an address, or "[kernel]+0x..." where
// kptr_restrict hides the symbols or none fits.
func (k *Kernel) Name(addr uint64) string {
	k.once.Do(k.load)
	if name := k.funcs.name(addr); name != "" {
		return name
	}
	return fmt.Sprintf("[kernel]+%#x", addr)
}

// Open opens kallsyms, to be read later: the kernel shows addresses to who had
// CAP_SYSLOG when opening it. It may be called more than once.
func (k *Kernel) Open() {
	k.opening.Do(func() {
		f, err := os.Open(kallsyms)
		if err == nil {
			k.file = f
		}
	})
}

// KernelShown says whether the kernel shows this process the addresses of its
// functions. Before them come those of variables by CPU, which begin at 0.
func KernelShown() bool {
	f, err := os.Open(kallsyms)
	if err != nil {
		return false
	}
	defer f.Close()
	return showsCode(io.LimitReader(f, 1<<20))
}

func showsCode(r io.Reader) bool {
	for scan := bufio.NewScanner(r); scan.Scan(); {
		if _, ok := parseKernelSymbol(scan.Bytes()); ok {
			return true
		}
	}
	return false
}

func (k *Kernel) load() {
	k.Open()
	if k.file == nil {
		return
	}
	defer k.file.Close()
	k.funcs = parseKallsyms(k.file)
}

// About what a usual kernel has, so that the lists need not grow.
const (
	usualKernelSymbols = 80_000
	usualKernelNames   = 2 << 20
)

// padding says that a symbol is the room that the kernel leaves before a
// function, for patches of its own. Nearly every function has one: they would
// be half of the table.
func padding(name []byte) bool {
	return bytes.HasPrefix(name, []byte("__pfx_")) || bytes.HasPrefix(name, []byte("__cfi_"))
}

func parseKallsyms(r io.Reader) kernelTable {
	type symbol struct {
		addr         uint64
		name, module uint32
	}
	list := make([]symbol, 0, usualKernelSymbols)
	t := kernelTable{names: make([]byte, 0, usualKernelNames)}
	modules := map[string]uint32{}
	scan := bufio.NewScanner(r)
	for scan.Scan() && len(list) < maxKernelSymbols && len(t.names) < maxKernelNames {
		s, ok := parseKernelSymbol(scan.Bytes())
		if !ok || padding(s.name) {
			continue
		}
		module, known := modules[string(s.module)]
		if !known {
			module = uint32(len(modules))
			modules[string(s.module)] = module
		}
		list = append(list, symbol{s.addr, uint32(len(t.names)), module})
		t.names = append(append(t.names, s.name...), 0)
	}
	if len(list) == 0 {
		return kernelTable{}
	}
	slices.SortStableFunc(list, func(a, b symbol) int { return cmp.Compare(a.addr, b.addr) })
	t.base, t.funcs = list[0].addr, make([]kernelFunc, 0, len(list))
	for i, s := range list {
		offset := s.addr - t.base
		again := len(t.funcs) > 0 && uint64(t.funcs[len(t.funcs)-1].offset) == offset
		if offset >= 1<<32 || again {
			continue
		}
		if i > 0 && list[i-1].module != s.module {
			t.funcs[len(t.funcs)-1].name |= lastOfModule
		}
		t.funcs = append(t.funcs, kernelFunc{uint32(offset), s.name})
	}
	t.names = bytes.Clone(t.names)
	return t
}

// kernelSymbol is a line of kallsyms.
type kernelSymbol struct {
	addr         uint64
	name, module []byte // module is empty for the kernel itself
}

// parseKernelSymbol takes the code symbols of lines such as
// "ffffffff81000000 T _stext" or "ffffffffc0201000 t nft_do [nf_tables]".
func parseKernelSymbol(line []byte) (s kernelSymbol, ok bool) {
	hex, rest, _ := bytes.Cut(line, []byte(" "))
	kind, rest, _ := bytes.Cut(rest, []byte(" "))
	if len(hex) == 0 || len(hex) > 16 || len(kind) != 1 || len(rest) == 0 || !bytes.ContainsAny(kind, "tTwW") {
		return s, false
	}
	for _, c := range hex {
		digit := bytes.IndexByte([]byte("0123456789abcdef"), c)
		if digit < 0 {
			return s, false
		}
		s.addr = s.addr<<4 | uint64(digit)
	}
	s.name = rest
	if end := bytes.IndexAny(rest, " \t"); end >= 0 {
		s.name, s.module = rest[:end], bytes.TrimSpace(rest[end:])
	}
	return s, s.addr != 0 && len(s.name) > 0
}

// name finds the function by its start and the start of the next one, for
// kallsyms has no sizes. Where another module follows, what lies between may be
// code that was loaded since: there the name holds to the end of the page, which
// belongs to one module.
func (t *kernelTable) name(addr uint64) string {
	if addr < t.base || addr-t.base >= 1<<32 {
		return ""
	}
	offset := uint32(addr - t.base)
	i := sort.Search(len(t.funcs), func(i int) bool { return t.funcs[i].offset > offset })
	if i == 0 || i == len(t.funcs) || offset-t.funcs[i-1].offset > maxKernelGap {
		return ""
	}
	f := t.funcs[i-1]
	if f.name&lastOfModule != 0 && addr/kernelPage != (t.base+uint64(f.offset))/kernelPage {
		return ""
	}
	return cstring(t.names, f.name&^lastOfModule)
}
