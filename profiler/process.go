package profiler

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// Process is everything that is known of one watched process: its memory, its
// mappings, its names, its Lua VMs. It belongs to that very process, not to
// its pid: workers forked from one master have the same addresses, and must
// not share what was learned of them. Goroutines may share it; the caller
// closes it.
type Process struct {
	mem   *procmem.Process
	cache *symbol.Cache

	mu      sync.Mutex
	modules *modules
	loop    loopFinder
	vms     vms
	puc     pucLua
	view    *snapshot // of the sample that is being understood
}

// Open opens a running process. The cache of images is shared by all. It
// returns procmem.ErrGone if there is no such process.
func Open(pid int, cache *symbol.Cache) (*Process, error) {
	return open(pid, cache, time.Now)
}

func open(pid int, cache *symbol.Cache, now func() time.Time) (*Process, error) {
	mem, err := procmem.Open(pid)
	if err != nil {
		return nil, err
	}
	m, err := openModules(pid, cache, now)
	if err != nil {
		_ = mem.Close()
		return nil, err
	}
	p := &Process{mem: mem, cache: cache, modules: m, view: newSnapshot(mem), loop: loopFinder{seed: maphash.MakeSeed()}}
	p.loop.ranges = findLoop(pid, cache, m.maps)
	p.vms = vms{mem: mem, view: p.view, images: images{pid, cache}, modules: m}
	p.vms.look()
	return p, nil
}

// findLoop finds those of the loopFunctions that the program exports.
func findLoop(pid int, cache *symbol.Cache, maps procmem.Maps) []loopRange {
	var found []loopRange
	for name, role := range loopFunctions {
		if addr, size, ok := cache.ProgramSymbol(pid, maps, name); ok && size > 0 {
			found = append(found, loopRange{addr, addr + size, role})
		}
	}
	return found
}

// Close releases the handle on the process.
func (p *Process) Close() error { return p.mem.Close() }

// PID returns the process's id.
func (p *Process) PID() int { return p.mem.PID }

// StartTime returns the start of the process in clock ticks since boot: with
// the pid it names the process for ever.
func (p *Process) StartTime() uint64 { return p.mem.StartTime }

// Alive says whether the very process still runs.
func (p *Process) Alive() bool { return p.mem.Alive() }

// Memory reads the process's memory as it is now.
func (p *Process) Memory() procmem.Memory { return p.mem }

// StackEnd returns the end of the mapping that holds a stack pointer, 0 if
// there is none.
func (p *Process) StackEnd(sp uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.modules.known(sp) {
		return 0
	}
	m, _ := p.modules.maps.Find(sp)
	return m.End
}

// Code says that an address lies in code, as far as is known of the mappings.
func (p *Process) Code(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.modules.isCode(addr)
}

// Symbol finds an exported symbol and returns its address and size.
func (p *Process) Symbol(name string) (addr, size uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cache.Symbol(p.mem.PID, p.modules.maps, name)
}

// LuaWatch returns what the sampler needs to copy the Lua VM; the zero value
// while none has been found. It may change later: a worker that was opened
// early finds its VM when it is first needed.
func (p *Process) LuaWatch() bpf.LuaWatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.vms.watch()
}

// LuaProblem says why a Lua VM that is in the process cannot be read; nil if
// there is none, or all is well.
func (p *Process) LuaProblem() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.vms.problem
}

// Table reads the entries of a Lua table of the process as it is now, at most
// limit. addr is a stack.Value's Addr; what is no table gives nothing.
func (p *Process) Table(addr uint64, limit int) []stack.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, vm := range p.vms.list {
		if entries := vm.Table(p.mem, addr, limit); entries != nil {
			return entries
		}
	}
	return nil
}
