package lua

import (
	"fmt"
	"slices"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

// VM reads the Lua states of one process. One goroutine at a time uses it.
type VM struct {
	*layout
	globals map[uint64]bool // global states: proven ones, and refuted ones
	protos  map[uint64]*proto
}

// New returns a reader for the Lua whose lua_ident is given, nil if that is
// neither 5.3 nor 5.4.
func New(ident string) *VM {
	l := layoutOf(ident)
	if l == nil {
		return nil
	}
	return &VM{layout: l, globals: map[uint64]bool{}, protos: map[uint64]*proto{}}
}

// Version returns "5.3" or "5.4".
func (vm *VM) Version() string { return vm.version }

// Bounds of one walk.
const (
	maxReads   = 20_000
	maxFrames  = 256
	maxThreads = 8
	maxKnown   = 4096
)

// Walk is what Lua ran at one instant, innermost first. Each run holds the
// functions that called each other without C in between, leaf first: they
// share one machine frame of luaV_execute. Apart is true where a run has none
// of its own: a coroutine that went on after a yield has left the machine
// frames of its outer functions.
type Walk struct {
	Runs      []Run
	Truncated string // why not all is there; empty: all is
}

// Run is a part of a Walk.
type Run struct {
	Frames []stack.Frame
	Apart  bool
}

// Walk finds the running Lua states among words, which are registers and then
// the machine stack from its top, and walks their calls.
func (vm *VM) Walk(mem procmem.Memory, words []uint64) Walk {
	var w Walk
	r := &reader{mem: mem, left: maxReads}
	tried := map[uint64]bool{}
	threads := 0
	for _, addr := range words {
		if !object(addr) || tried[addr] {
			continue
		}
		tried[addr] = true
		t, ok := vm.thread(r, addr)
		if !ok || threads > 0 && !vm.waits(r, t) {
			continue
		}
		runs, why := vm.calls(r, t)
		if len(runs) > 0 {
			threads++
			w.Runs = append(w.Runs, runs...)
		}
		if w.Truncated == "" {
			w.Truncated = why
		}
		if threads == maxThreads {
			break
		}
	}
	if r.spent() && w.Truncated == "" {
		w.Truncated = fmt.Sprintf("over %d reads", maxReads)
	}
	return w
}

// thread is a lua_State that was read.
type thread struct {
	addr, ci, stack, last uint64
}

// thread proves a state that runs.
func (vm *VM) thread(r *reader, addr uint64) (thread, bool) {
	b := r.block(addr, vm.baseCI)
	if b == nil || b[objectMark] != typeThread || b[vm.status] != 0 {
		return thread{}, false
	}
	t := thread{addr, u64(b, vm.ci), u64(b, vm.stack), u64(b, vm.stackLast)}
	top, global := u64(b, vm.top), u64(b, vm.global)
	if !object(t.ci) || !object(t.stack) || t.last <= t.stack || t.last-t.stack > 1<<26 || top < t.stack || top > t.last+1024 || !object(global) {
		return thread{}, false
	}
	proven, known := vm.globals[global]
	if !known {
		if len(vm.globals) >= maxKnown {
			clear(vm.globals)
		}
		proven = vm.proveGlobal(r, global)
		vm.globals[global] = proven
	}
	return t, proven
}

// globalSize is how much of a global state is searched.
const globalSize = 2048

// firstString is what Lua allocates before anything else, to have it when
// memory is gone. The global state keeps it one or two words behind its main
// thread.
const firstString = "not enough memory"

func (vm *VM) proveGlobal(r *reader, global uint64) bool {
	var b []byte
	for at := uint64(0); at < globalSize; at += 256 {
		part := r.block(global+at, 256)
		if part == nil {
			break
		}
		b = append(b, part...)
	}
	for at := 0; at+24 <= len(b); at += 8 {
		main := u64(b, at)
		if !object(main) {
			continue
		}
		head := r.block(main, vm.baseCI)
		if head == nil || head[objectMark] != typeThread || u64(head, vm.global) != global {
			continue
		}
		for _, behind := range []int{8, 16} {
			if text, _, ok := r.text(u64(b, at+behind), len(firstString)+1); ok && text == firstString {
				return true
			}
		}
	}
	return false
}

// waits says that a state has called something in C, as one that resumed
// another has.
func (vm *VM) waits(r *reader, t thread) bool {
	b := r.block(t.ci, vm.ciSize)
	return b != nil && !vm.runsLua(b)
}

func (vm *VM) runsLua(ci []byte) bool {
	return (u16(ci, vm.ciStatus)&vm.ciKind != 0) != vm.ciIsC
}

// calls walks the calls of a state.
func (vm *VM) calls(r *reader, t thread) (runs []Run, truncated string) {
	var run Run
	end := func() {
		if len(run.Frames) > 0 {
			runs = append(runs, run)
		}
		run = Run{}
	}
	defer end()
	base := t.addr + uint64(vm.baseCI)
	ci := t.ci
	inner := activation{} // what the frame at hand called, if that is Lua code
	inC := false          // or whether that is a function in C
	for n := 0; ci != base; n++ {
		b := r.block(ci, vm.ciSize)
		previous := u64(b, 16)
		switch {
		case b == nil || !object(previous) || previous == ci:
			return runs, "a call's record can't be read"
		case n == maxFrames:
			return runs, fmt.Sprintf("over %d calls", maxFrames)
		case !vm.runsLua(b):
			end()
			inner, inC = activation{}, true
			ci = previous
			continue
		}
		a, ok := vm.activation(r, t, b)
		if !ok {
			return runs, "a call's function can't be read"
		}
		if inner.proto != nil && !inner.tail {
			if name := vm.calledName(r, a); name != "" {
				last := run.Frames
				if len(last) == 0 {
					last = runs[len(runs)-1].Frames
				}
				last[len(last)-1].Function = name
			}
		}
		if inC {
			if name := vm.calledName(r, a); name != "" {
				run.Frames = append(run.Frames, stack.Frame{Kind: stack.Builtin, Function: name})
			}
		}
		run.Frames = append(run.Frames, vm.frame(r, a))
		inner, inC = a, false
		if u16(b, vm.ciStatus)&vm.ciFresh != 0 {
			end()
			run.Apart = true
		}
		ci = previous
	}
	return runs, ""
}

// activation is one call of a Lua function.
type activation struct {
	proto   *proto
	closure uint64
	base    uint64 // of its registers
	pc      int    // instruction that runs
	tail    bool
}

func (vm *VM) activation(r *reader, t thread, ci []byte) (activation, bool) {
	slot := u64(ci, 0)
	if slot < t.stack || slot >= t.last+1024 || slot%8 != 0 {
		return activation{}, false
	}
	value := r.block(slot, 16)
	if value == nil || value[8] != isLuaClosure {
		return activation{}, false
	}
	a := activation{closure: u64(value, 0), base: slot + 16, tail: u16(ci, vm.ciStatus)&vm.ciTail != 0}
	if vm.ciBase != 0 {
		a.base = u64(ci, vm.ciBase)
	}
	closure := r.block(a.closure, closureProto+8)
	if closure == nil || closure[objectMark] != typeLuaClosure {
		return activation{}, false
	}
	if a.proto = vm.proto(r, u64(closure, closureProto)); a.proto == nil {
		return activation{}, false
	}
	a.pc = a.proto.index(u64(ci, vm.ciSaved))
	return a, a.pc >= 0
}

func (vm *VM) frame(r *reader, a activation) stack.Frame {
	f := stack.Frame{
		Kind: stack.Lua, File: a.proto.file, Line: vm.line(r, a.proto, a.pc), StartLine: a.proto.first,
		Function: fmt.Sprintf("function <%s:%d>", a.proto.file, a.proto.first),
	}
	if a.proto.first == 0 {
		f.Function = "main chunk"
	}
	args, locals := vm.variables(r, a)
	f.Values = slices.Concat(args, locals)
	return f
}
