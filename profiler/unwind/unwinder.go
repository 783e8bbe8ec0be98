package unwind

import (
	"fmt"
	"sync/atomic"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// Unwinder walks the stacks of one process. It is safe for concurrent use.
type Unwinder struct {
	cache *symbol.Cache
	pid   int
	space atomic.Pointer[space]
	arch  atomic.Pointer[arch]
}

// New returns an unwinder for a process with the given mappings.
func New(cache *symbol.Cache, pid int, maps procmem.Maps) *Unwinder {
	u := &Unwinder{cache: cache, pid: pid}
	u.SetMaps(maps)
	return u
}

// SetMaps replaces the mappings. What is known of unchanged ones is kept.
func (u *Unwinder) SetMaps(maps procmem.Maps) {
	s := newSpace(maps, u.space.Load())
	u.space.Store(s)
	if u.arch.Load() != nil {
		return
	}
	u.arch.Store(&amd64)
	for _, r := range s.regions {
		if r.load(u.cache, u.pid); r.image != nil {
			u.arch.Store(archOf(r.image.Machine()))
			return
		}
	}
}

// Go says whether the program was compiled by Go.
func (u *Unwinder) Go() bool {
	for _, r := range u.space.Load().regions {
		if r.load(u.cache, u.pid); r.image != nil {
			return r.goTab != nil
		}
	}
	return false
}

// Place is where an address lies in the process.
type Place struct {
	Mapping procmem.Mapping
	Image   *symbol.Image // nil for anonymous code
	Vaddr   uint64        // of the address in the image
}

// Locate finds the executable mapping and the image of an address.
func (u *Unwinder) Locate(addr uint64) (Place, bool) {
	r := u.region(addr)
	if r == nil {
		return Place{}, false
	}
	return Place{Mapping: r.Mapping, Image: r.image, Vaddr: addr - r.bias}, true
}

// Name names the function at an address, see symbol.Image.Name. Without an
// image it gives the mapping's name or the bare address.
func (u *Unwinder) Name(addr uint64) string {
	p, ok := u.Locate(addr)
	switch {
	case ok && p.Image != nil:
		return p.Image.Name(p.Vaddr)
	case ok && p.Mapping.Path != "":
		return fmt.Sprintf("%s+%#x", p.Mapping.Path, addr-p.Mapping.Start)
	}
	return fmt.Sprintf("%#x", addr)
}

func (u *Unwinder) region(addr uint64) *region {
	r := u.space.Load().find(addr)
	if r != nil {
		r.load(u.cache, u.pid)
	}
	return r
}

// Unwind walks from the given registers to the process or thread entry. Mem
// must hold the stack; to judge return addresses where there are no rules it
// also reads code, from the image or from mem. Frames are leaf first and
// include the leaf. Truncated is empty if the entry was reached, else it says
// where the walk ended and why.
//
// Registers that are not known are never guessed: a blocked thread may be
// walked from its stack pointer and program counter alone.
func (u *Unwinder) Unwind(regs stack.Registers, mem procmem.Memory, code Code) (frames []Frame, truncated string) {
	w := walk{u: u, arch: u.arch.Load(), mem: newStackMemory(mem), code: code, scans: maxScans}
	w.frames = make([]Frame, 0, 24)
	if regs.Known&bits(w.arch.pc, w.arch.sp) != bits(w.arch.pc, w.arch.sp) {
		return nil, "frame 0: program counter or stack pointer unknown"
	}
	w.run(Frame{PC: regs.Value[w.arch.pc], Registers: regs})
	if missing := w.mem.missing; w.truncated != "" && missing != 0 && u.region(missing) == nil {
		w.truncated = fmt.Sprintf("frame %d: cut window at %#x", w.depth-1, missing)
	}
	return w.frames, w.truncated
}
