package luajit

import (
	"github.com/spinguard/spinguard/profiler/procmem"
)

// VM is one virtual machine (global_State) of one process. It does not change
// after Find, but for bounded caches; goroutines may share it. It is good for
// the process instance in which it was found, and not for its forks.
type VM struct {
	layout
	global uint64
	main   uint64
	live   reader // the memory that Find was given
	protos *protoCache
	names  *nameIndex
	traces *traceTable
}

// Find looks for the LuaJIT virtual machines of a process by content: neither
// names of files nor symbols are needed. It keeps mem for Code; for as long
// as a VM is used, mem must stay open. images may be nil: then no field is
// known that only an exported accessor shows, such as the request.
//
// It returns ErrNone where there is none, and an *UnsupportedError where there
// are only such that can't be read.
func Find(mem procmem.Memory, maps procmem.Maps, images Images) ([]*VM, error) {
	var vms []*VM
	var refused error
	for _, c := range scan(mem, maps) {
		vm, err := newVM(mem, maps, images, c)
		switch {
		case err == nil:
			vms = append(vms, vm)
		case refused == nil:
			refused = err
		}
	}
	switch {
	case len(vms) > 0:
		return vms, nil
	case refused != nil:
		return nil, refused
	}
	return nil, ErrNone
}

func newVM(mem procmem.Memory, maps procmem.Maps, images Images, c candidate) (*VM, error) {
	if c.gc32 {
		return nil, unsupported("GC32 build: only builds with 64-bit references (LJ_GC64) are read")
	}
	r := reader{mem: mem}
	l, err := derive(r, maps, c)
	if err != nil {
		return nil, err
	}
	if err := checkAccessors(l, r, maps, images); err != nil {
		return nil, err
	}
	if l.exdata >= int64(c.global-c.thread) {
		return nil, unsupported("thread: lua_getexdata reads behind it")
	}
	vm := &VM{layout: *l, global: c.global, main: c.thread, live: reader{mem: mem, strLen: uint64(l.strLen)}, protos: newProtoCache(), names: &nameIndex{}}
	vm.traces = &traceTable{}
	if !vm.isThread(r, c.thread) {
		return nil, unsupported("main thread: its stack does not begin with itself")
	}
	return vm, nil
}

// background reads the live process for what serves many walks. The memory
// of one sample may be bounded to what one walk needs.
func (vm *VM) background() reader {
	r := vm.live
	r.mem = newPages(vm.live.mem)
	r.budget = &budget{walkBudget}
	return r
}

// isThread proves a lua_State of this VM: it refers to the global state, and
// its stack begins with a reference to itself.
func (vm *VM) isThread(r reader, addr uint64) bool {
	if !r.is(addr, tagThread) || r.u64(addr+uint64(vm.glref)) != vm.global {
		return false
	}
	stack, end := r.u64(addr+uint64(vm.stack)), r.u64(addr+uint64(vm.maxstack))
	base := r.u64(addr + uint64(vm.base))
	return stack&7 == 0 && end > stack && base >= stack && base <= end &&
		r.u64(stack) == uint64(tagged(tagThread, addr))
}

// Ended says that the VM is being closed, or is gone, in the live process: a
// worker does so before it exits, and then no object of it means anything.
func (vm *VM) Ended() bool {
	r := vm.background()
	return r.u64(vm.global+uint64(vm.curL)) == 0 || !vm.isThread(r, vm.main)
}

// Global returns the address of the VM's global_State.
func (vm *VM) Global() uint64 { return vm.global }

// Interpreter returns the range of the interpreter's code.
func (vm *VM) Interpreter() (lo, hi uint64) { return vm.lo, vm.hi }

// Layout says what to copy at the instant of a sample: a piece of the
// global_State, and the fields that lead to the running thread's stack.
type Layout struct {
	Global       uint64
	GlobalOffset int
	GlobalSize   int // at most 512
	CurL         int // offsets inside global_State
	JITBase      int
	Base         int // offsets inside lua_State
	Top          int
	Stack        int
	MaxStack     int
}

// Watch returns what to copy with each sample.
func (vm *VM) Watch() Layout {
	lo, hi := min(vm.vmstate, vm.curL, vm.jitBase)&^7, max(vm.vmstate, vm.curL, vm.jitBase)+8
	const most = 512
	return Layout{
		Global: vm.global, GlobalOffset: int(lo), GlobalSize: int(min(hi-lo, most)),
		CurL: int(vm.curL), JITBase: int(vm.jitBase),
		Base: int(vm.base), Top: int(vm.top), Stack: int(vm.stack), MaxStack: int(vm.maxstack),
	}
}
