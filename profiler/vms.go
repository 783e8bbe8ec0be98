package profiler

import (
	"errors"
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/luajit"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// vms finds and walks the Lua VMs of one process.
type vms struct {
	mem     procmem.Memory
	view    procmem.Memory // as the sample sees it that is being understood
	images  luajit.Images
	modules *modules
	list    []*luajit.VM
	areas   map[uint64]bool // starts of mappings in which traces were seen
	places  bool            // values of variables are not wanted
	problem error           // why a VM that is there cannot be read
	wait    time.Duration
	next    time.Time // when to look again
}

// Looking for a VM reads much memory. A process that was opened before its VM
// existed gets a few tries in its first minute; later ones need a reason.
const (
	firstWait = 250 * time.Millisecond
	lastWait  = 30 * time.Second
)

const maxAreas = 1024

// look searches the process for VMs, unless that was done just now.
func (v *vms) look() {
	now := v.modules.now()
	if now.Before(v.next) {
		return
	}
	v.wait = max(firstWait, min(2*v.wait, lastWait))
	v.next = now.Add(v.wait)
	v.modules.refresh()
	list, err := luajit.Find(v.mem, v.modules.maps, v.images)
	if err == nil {
		v.list, v.problem, v.wait = list, nil, 0
		v.areas = map[uint64]bool{}
		return
	}
	if !errors.Is(err, luajit.ErrNone) {
		v.problem = err
	}
}

// watch returns what the sampler copies. It copies one VM; the others are read
// from live memory.
func (v *vms) watch() bpf.LuaWatch {
	if len(v.list) == 0 && v.problem == nil && v.wait < lastWait {
		v.look()
	}
	if len(v.list) == 0 {
		return bpf.LuaWatch{}
	}
	return bpf.LuaWatch(v.list[0].Watch())
}

// code tells the frame size of compiled Lua code.
func (v *vms) code(pc uint64) (int, bool) {
	for _, vm := range v.list {
		if kind, size := vm.Code(v.view, pc); kind == luajit.CodeTrace {
			return size, true
		}
	}
	return 0, false
}

// runsLua says that an address lies in an interpreter or in a trace.
func (v *vms) runsLua(pc uint64) bool {
	for _, vm := range v.list {
		if lo, hi := vm.Interpreter(); pc >= lo && pc < hi {
			return true
		}
	}
	// Looking for a trace may read memory: not for code that has a file.
	m, ok := v.modules.maps.Find(pc)
	if !ok || !m.Anonymous() || len(v.list) == 0 {
		return false
	}
	if v.areas[m.Start] {
		return true
	}
	if _, ok := v.code(pc); ok {
		// What else lies there are the VM's stubs: no one else writes to it.
		if len(v.areas) >= maxAreas {
			clear(v.areas)
		}
		v.areas[m.Start] = true
		return true
	}
	return false
}

// missed looks for VMs again if machine code of one runs that is not known: a
// VM that came late, or another one in the place of the one that was known.
func (v *vms) missed(native []nativeFrame, segments []segment) {
	for i := range native {
		if native[i].vm && len(segments) == 0 || len(v.list) == 0 && v.interpreter(native[i].Address) {
			v.look()
			return
		}
	}
}

// interpreter says that an address lies in the interpreter of a LuaJIT.
func (v *vms) interpreter(addr uint64) bool {
	m, ok := v.modules.maps.Find(addr)
	if !ok || m.Inode == 0 {
		return false
	}
	start, end, ok := v.modules.unwinder.InterpreterRange(m)
	return ok && addr >= start && addr < end
}

// vmEnded is why the stack of a worker is cut that has closed its VM since.
const vmEnded = "VM has ended since"

// luaStack is what the VMs say of one instant.
type luaStack struct {
	segments        []segment
	state           string
	thread, request uint64
	truncated       string
}

// work names what the VM does besides running Lua; empty if it runs Lua or C.
func (l luaStack) work() string {
	switch l.state {
	case "gc", "exit", "record", "optimise", "assemble":
		return l.state
	}
	return ""
}

// walk walks the Lua stacks. at is the innermost frame in Lua code, nil if
// there is none.
func (v *vms) walk(at *unwind.Frame, mem procmem.Memory) luaStack {
	var out luaStack
	var regs *stack.Registers
	if at != nil {
		regs = &at.Registers
	}
	var lowest uint64
	for _, vm := range v.list {
		walk := vm.Walk
		if v.places {
			walk = vm.WalkPlaces
		}
		w, err := walk(mem, regs)
		if err != nil || len(w.CFA) == 0 {
			continue
		}
		if w.Truncated != "" && vm.Ended() {
			w.Truncated = vmEnded
		}
		for i := range w.Segments {
			out.segments = append(out.segments, segment{w.CFA[i], w.Segments[i]})
		}
		// Of several VMs in each other the innermost counts.
		if lowest == 0 || w.CFA[0] < lowest {
			lowest = w.CFA[0]
			out.state, out.thread, out.request, out.truncated = w.State, w.Thread, w.Request, w.Truncated
		}
	}
	return out
}

// images resolves exported symbols for the luajit package.
type images struct {
	pid   int
	cache *symbol.Cache
}

// Symbol implements luajit.Images.
func (i images) Symbol(m procmem.Mapping, name string) (addr, size uint64, ok bool) {
	image, err := i.cache.Open(i.pid, m)
	if err != nil {
		return 0, 0, false
	}
	bias, placed := image.Bias(m)
	value, size, found := image.Lookup(name)
	return value + bias, size, found && placed
}
