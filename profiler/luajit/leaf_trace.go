package luajit

import "github.com/spinguard/spinguard/profiler/stack"

// traceLeaf finds the innermost frame if a trace is running, or is just being
// left.
func (w *walker) traceLeaf() (leaf, bool) {
	if w.vm.mcode == 0 || w.cf == 0 {
		return leaf{}, false
	}
	base := w.r.u64(w.vm.global + uint64(w.vm.jitBase))
	if w.vmstate == ^int32(3) { // leaving
		return w.exitLeaf(base)
	}
	if base == 0 || !w.inStack(base) || (w.vmstate < 0 && w.vmstate != ^int32(2)) {
		return leaf{}, false
	}
	t, off, regs := w.runningTrace()
	if t == nil {
		return leaf{}, false
	}
	d := w.vm.detail(w.r, t)
	if d.snaps == nil || off == unknownOffset {
		// The function is known, but not where it is.
		return leaf{base: base, trace: t.no, root: base, slots: &slots{r: w.r}}, true
	}
	return w.snapLeaf(d, snapshotAt(d.snaps, off), off, base, regs), true
}

const unknownOffset = ^uint64(0)

// runningTrace returns the trace that runs, how far its code got, and the
// registers if they are those of its code.
func (w *walker) runningTrace() (*trace, uint64, *stack.Registers) {
	if w.regs != nil {
		pc := w.regs.PC()
		if _, sampled := w.regs.Get(stack.RDX); !sampled {
			pc-- // an unwound frame: the call lies before the return address
		}
		if t := w.vm.traceAt(w.r, pc); t != nil {
			return t, pc - t.mcode, w.regs
		}
	}
	if w.vmstate >= 0 {
		if t := w.vm.loadTrace(w.r, int(w.vmstate)); t != nil {
			if ret := w.r.u64(w.traceSP(t) - 8); t.holds(ret - 1) {
				return t, ret - 1 - t.mcode, nil
			}
			return t, unknownOffset, nil // such as on its way out
		}
	}
	return w.callingTrace()
}

// traceSP is the machine stack pointer inside the code of a trace: it runs on
// the interpreter's frame, and adds its own spill slots.
func (w *walker) traceSP(t *trace) uint64 { return w.cf - w.vm.jitExtra - t.spadjust }

// callingTrace finds the trace that called the C code that runs now: its
// return address lies where such a trace's frame ends.
func (w *walker) callingTrace() (*trace, uint64, *stack.Registers) {
	const deepest = 4096
	lowest := w.cf - deepest
	if w.regs != nil && w.regs.SP() > lowest && w.regs.SP() < w.cf {
		lowest = w.regs.SP() &^ 7
	}
	for at := w.cf - w.vm.jitExtra - 8; at >= lowest && at < w.cf; at -= 8 {
		ret := w.r.u64(at)
		if ret == 0 || ret > addrMask {
			continue
		}
		if t := w.vm.traceAt(w.r, ret-1); t != nil && w.traceSP(t)-8 == at {
			return t, ret - 1 - t.mcode, nil
		}
	}
	return nil, 0, nil
}

// snapLeaf is the frame that a snapshot describes, at an offset into the code
// behind it.
func (w *walker) snapLeaf(d *traceDetail, at int, off, base uint64, regs *stack.Registers) leaf {
	t := &d.t
	s := w.vm.overlay(w.r, t, d.snaps, at, base, machine{sp: w.traceSP(t), off: off, regs: regs})
	snap := d.snaps[at]
	l := leaf{base: base + 8*snap.delta, pc: snap.pc + 4, trace: t.no, root: base, slots: s}
	if at < len(d.places) {
		p := d.places[at]
		pos := p.at
		if off >= p.split {
			pos = p.after
		}
		l.pc = p.proto.bcAddr + 4*uint64(pos) + 4
	}
	return l
}

// exitLeaf is the innermost frame while a trace restores the interpreter's
// state: still the snapshot's, until that is written back.
func (w *walker) exitLeaf(base uint64) (leaf, bool) {
	if w.vm.parent == 0 {
		return leaf{}, false
	}
	t := w.vm.loadTrace(w.r, int(w.r.u32(w.vm.global+uint64(w.vm.parent))))
	if t == nil {
		return leaf{}, false
	}
	d, at := w.vm.detail(w.r, t), int(w.r.u32(w.vm.global+uint64(w.vm.exitno)))
	if at < 0 || at >= len(d.snaps) {
		return leaf{}, false
	}
	if w.r.u64(w.cf+w.vm.savePC) == d.snaps[at].pc+4 {
		saved := w.savedLeaf() // written back; only the bytecode address may lag
		saved.pc = d.snaps[at].pc + 4
		return saved, true
	}
	if base == 0 {
		base = w.r.u64(w.thread + uint64(w.vm.base))
	}
	if !w.inStack(base) {
		return leaf{}, false
	}
	return w.snapLeaf(d, at, uint64(d.snaps[at].mcofs), base, nil), true
}
