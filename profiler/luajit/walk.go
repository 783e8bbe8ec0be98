package luajit

import (
	"fmt"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

// Walk is what a VM was doing at one instant.
type Walk struct {
	// State is interpreter, c, gc, exit, record, optimise, assemble or trace.
	State   string
	Thread  uint64 // running lua_State
	Request uint64 // its exdata, 0 if none or unknown
	Trace   int    // number of the running trace, 0 if none
	// Segments hold the frames, leaf first. Each entry of the VM from C has
	// one, so there are as many as native frames inside of VM code. A segment
	// is empty where C runs protected without a Lua frame.
	Segments [][]stack.Frame
	// CFA has, for each segment, the address just above the native frame that
	// runs it: the stack pointer after that frame returned.
	CFA []uint64
	// Truncated says why the walk ended before the bottom of the stack; empty
	// if it did not.
	Truncated string
}

const (
	maxFrames   = 512
	maxSegments = 128
	maxThreads  = 32
)

var stateNames = [...]string{"interpreter", "c", "gc", "exit", "record", "optimise", "assemble"}

// stateName names the content of vmstate.
func stateName(v int32) string {
	switch i := int(^v); {
	case v >= 0:
		return "trace"
	case i < len(stateNames):
		return stateNames[i]
	}
	return fmt.Sprintf("state(%d)", v)
}

// Walk reads the Lua stack as it was at the instant that mem and regs were
// taken: usually mem is a procmem.Overlay of copied windows over the live
// process. regs are the registers of the sample or, better where the sample
// lies in C code, those of the innermost native frame inside VM code, as far
// as unwinding knows them; nil is allowed, and loses precision.
//
// It returns ErrIdle if no Lua function is running. A stack that can't be
// followed to its end is returned as far as it goes, with the reason in
// Truncated.
func (vm *VM) Walk(mem procmem.Memory, regs *stack.Registers) (Walk, error) {
	return vm.walk(mem, regs, 0)
}

// WalkPlaces is Walk without the values of variables, which takes less time.
func (vm *VM) WalkPlaces(mem procmem.Memory, regs *stack.Registers) (Walk, error) {
	return vm.walk(mem, regs, allValues)
}

// walk counts as many values as read before it begins.
func (vm *VM) walk(mem procmem.Memory, regs *stack.Registers, values int) (Walk, error) {
	r := reader{mem: mem, strLen: uint64(vm.strLen), budget: &budget{walkBudget}}
	thread := r.u64(vm.global + uint64(vm.curL))
	if !vm.isThread(r, thread) {
		return Walk{}, ErrIdle
	}
	w := &walker{vm: vm, r: r, regs: regs, values: values}
	w.enter(thread)
	if w.cf == 0 {
		return Walk{}, ErrIdle
	}
	w.vmstate = int32(r.u32(vm.global + uint64(vm.vmstate)))
	w.out.State = stateName(w.vmstate)
	w.out.Thread = thread
	if vm.exdata >= 0 {
		w.out.Request = r.u64(thread + uint64(vm.exdata))
	}
	leaf, why := w.leaf()
	if w.out.Truncated = why; why == "" {
		w.out.Trace = leaf.trace
		w.threads(leaf)
	}
	if r.spent() {
		w.out.Truncated = "the stack took too much memory to read"
	}
	return w.out, nil
}

// walker carries one walk.
type walker struct {
	vm      *VM
	r       reader
	regs    *stack.Registers
	vmstate int32
	out     Walk
	frames  int
	values  int
	pending []pendingName

	// The thread that is being walked.
	thread, stack, limit uint64
	cf                   uint64 // the C frame of the current segment, 0: none left
	entered              uint64 // the innermost C frame, at the instant of the sample
}

// enter turns to a thread.
func (w *walker) enter(thread uint64) {
	w.thread = thread
	w.stack = w.r.u64(thread + uint64(w.vm.stack))
	w.limit = w.r.u64(thread + uint64(w.vm.maxstack))
	w.cf = w.r.u64(thread+uint64(w.vm.cframe)) &^ 3
	w.entered = w.cf
}

// waits says that who resumed the current thread still waits for it: of its
// stack nothing was copied, and what lies there by now may be another one. It
// can't have gone on as long as this thread runs in the same C frame.
func (w *walker) waits() bool {
	return w.vm.background().u64(w.thread+uint64(w.vm.cframe))&^3 == w.entered
}

// bottom is the base of a thread's lowest frame: no function runs there.
func (w *walker) bottom() uint64 { return w.stack + 16 }

// inStack says that an address is a slot where a frame's base may lie.
func (w *walker) inStack(addr uint64) bool {
	return addr&7 == 0 && addr >= w.bottom() && addr <= w.limit
}

// threads walks the running thread, then those that wait for it.
func (w *walker) threads(leaf leaf) {
	for n := 0; ; n++ {
		w.segment()
		if why := w.chain(leaf); why != "" {
			w.out.Truncated = why
			return
		}
		last := w.drain()
		parent := w.parent(last)
		if parent == 0 {
			return
		}
		if !w.waits() {
			w.out.Truncated = "waiting coroutine has moved on since"
			return
		}
		if n == maxThreads {
			w.out.Truncated = fmt.Sprintf("more than %d coroutines in each other", maxThreads)
			return
		}
		w.enter(parent)
		leaf = w.savedLeaf()
	}
}

// segment begins a new segment for the current C frame.
func (w *walker) segment() {
	w.out.Segments = append(w.out.Segments, nil)
	cfa := uint64(0)
	if w.cf != 0 {
		cfa = w.cf + w.vm.frameSize
	}
	w.out.CFA = append(w.out.CFA, cfa)
}

// leave goes on to the C frame by which the thread was entered before.
func (w *walker) leave() {
	w.cf = w.previous(w.cf)
	if len(w.out.Segments) > maxSegments {
		w.cf = 0
	}
}

// previous returns the C frame before one, 0 if there is none. They lie on
// the machine stack, each above the one before.
func (w *walker) previous(cf uint64) uint64 {
	prev := w.r.u64(cf+w.vm.saveCF) &^ 3
	if prev <= cf || prev&7 != 0 {
		return 0
	}
	return prev
}

// plainC says that a C frame runs C code without a Lua frame of its own
// (protected calls out of C), and began above the frame with that base.
func (w *walker) plainC(cf, base uint64) bool {
	nres := int32(w.r.u32(cf + w.vm.saveNres))
	return nres < 0 && base-8 < w.stack+uint64(-int64(nres))
}

// drain passes what C frames are left below the last Lua frame, and returns
// where the outermost ends.
func (w *walker) drain() uint64 {
	for {
		cfa := w.cf + w.vm.frameSize
		if w.leave(); w.cf == 0 {
			return cfa
		}
		w.segment()
	}
}

// add appends a frame to the current segment.
func (w *walker) add(f stack.Frame) {
	last := len(w.out.Segments) - 1
	w.out.Segments[last] = append(w.out.Segments[last], f)
	w.frames++
}

// inSegment returns how many frames the current segment has.
func (w *walker) inSegment() int { return len(w.out.Segments[len(w.out.Segments)-1]) }

// parent looks for the thread that resumed this one. It is not linked from
// here, but its own C frame lies further up the machine stack, and holds it.
func (w *walker) parent(from uint64) uint64 {
	const reach = 8 << 10
	b := w.r.partial(from, reach)
	for off := 0; off+8 <= len(b); off += 8 {
		word := le64(b[off:])
		at := from + uint64(off) - w.vm.saveL
		if word == w.thread || at < from || !w.likeFrame(b, from, at) || !elsewhere(word, at) {
			continue
		}
		if w.r.u64(word+uint64(w.vm.cframe))&^3 == at && w.vm.isThread(w.r, word) {
			return word
		}
	}
	return 0
}

// likeFrame says whether words of the machine stack, which were copied from
// an address on, can be the C frame of an entry into the VM: it costs much
// less than to follow each pointer.
func (w *walker) likeFrame(b []byte, from, at uint64) bool {
	const align = 16
	end := at - from + w.vm.frameSize
	if (at+w.vm.frameSize)%align != 0 || end > uint64(len(b)) {
		return false
	}
	prev := le64(b[at-from+w.vm.saveCF:]) &^ 3
	return (prev == 0 || prev > at && !elsewhere(prev, at)) && elsewhere(le64(b[end-8:]), at)
}

// elsewhere says that an address can be one, and is not on the machine stack.
func elsewhere(addr, sp uint64) bool {
	const near = 8 << 20
	return addr > 1<<12 && addr <= addrMask && (addr < sp-near || addr > sp+near)
}
