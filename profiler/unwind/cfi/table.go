package cfi

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

// Form is the flavour of a section.
type Form uint8

// The two flavours.
const (
	EHFrame    Form = iota // .eh_frame
	DebugFrame             // .debug_frame
)

const (
	maxCIEs = 1 << 14 // kept while the functions are listed
	maxRows = 1 << 16 // kept for functions in use
)

// Table is the call frame information of one image, in vaddrs. It is safe for
// concurrent use.
type Table struct {
	data      []byte
	addr      uint64
	form      Form
	functions []function // sorted by start

	mu   sync.RWMutex
	used map[uint32]*Function // by offset of the record
	rows int                  // in used
}

// Parse lists the functions of a section that the image has at addr. Data is
// kept and must not change. Records that make no sense are skipped; a section
// without a single good one is an error.
func Parse(data []byte, addr uint64, form Form) (*Table, error) {
	t := &Table{data: data, addr: addr, form: form, used: map[uint32]*Function{}}
	if uint64(len(data)) > 1<<32-1 {
		return nil, errors.New("call frame information: over 4 GiB long")
	}
	cies := map[int]*cie{}
	for off := 0; ; {
		rec, ok := t.recordAt(off)
		if !ok {
			break
		}
		if !t.isCIE(rec) {
			t.list(off, rec, cies)
		}
		off = rec.end
	}
	if len(t.functions) == 0 {
		return nil, errors.New("call frame information: no function in it")
	}
	slices.SortStableFunc(t.functions, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	t.functions = slices.Clip(t.functions)
	return t, nil
}

// list adds the function of one record.
func (t *Table) list(off int, rec record, cies map[int]*cie) {
	at, ok := t.cieOf(rec)
	if !ok {
		return
	}
	c, known := cies[at]
	if !known {
		if parsed, ok := t.parseCIE(at); ok {
			c = &parsed
		}
		if len(cies) < maxCIEs {
			cies[at] = c // also the bad ones
		}
	}
	if c == nil {
		return
	}
	start, size, rest := t.parseFunction(rec, c)
	if rest.bad || start == 0 || size == 0 || size > 1<<32-1 || start+size < start {
		return // among others functions that the linker threw away
	}
	t.functions = append(t.functions, function{start, uint32(size), uint32(off)})
}

// Len returns the number of functions.
func (t *Table) Len() int { return len(t.functions) }

// Range returns the range of the i-th function in the order of addresses.
func (t *Table) Range(i int) (start, end uint64) {
	f := t.functions[i]
	return f.start, f.start + uint64(f.size)
}

func (t *Table) find(pc uint64) (function, bool) {
	lo, hi := 0, len(t.functions)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.functions[mid].start <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return function{}, false
	}
	f := t.functions[lo-1]
	return f, pc-f.start < uint64(f.size)
}

// FunctionRange returns the range of the function that holds a vaddr.
func (t *Table) FunctionRange(pc uint64) (start, end uint64, ok bool) {
	f, ok := t.find(pc)
	return f.start, f.start + uint64(f.size), ok
}

// Function returns the rules of the function that holds a vaddr. The result
// is shared and must not be changed.
func (t *Table) Function(pc uint64) (*Function, bool) {
	f, ok := t.find(pc)
	if !ok {
		return nil, false
	}
	t.mu.RLock()
	known := t.used[f.off]
	t.mu.RUnlock()
	if known == nil {
		known = t.run(f)
		t.keep(f.off, known)
	}
	return known, true
}

func (t *Table) keep(off uint32, f *Function) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows+len(f.Rows)+1 > maxRows {
		t.used, t.rows = map[uint32]*Function{}, 0
	}
	t.used[off] = f
	t.rows += len(f.Rows) + 1
}
