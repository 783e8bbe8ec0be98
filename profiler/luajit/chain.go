package luajit

import (
	"fmt"
)

// Types of frames, in the low bits of a frame's link.
const (
	linkLua    = 0
	linkC      = 1 // entered from C; 5: protected
	linkCont   = 2 // goes on in a continuation, such as after a metamethod
	linkVararg = 3
	linkPcall  = 6 // 7: with an active hook

	contTailcall = 0 // continuations that are no code
	contCallback = 1
)

// spot is one Lua stack frame: its base, its function, and where it is.
type spot struct {
	base  uint64
	fn    uint64 // GCfunc, or the thread itself in a dummy frame
	proto *proto // nil: not a Lua function, or unreadable
	pos   int    // index of the instruction; -1: unknown
	slots *slots
	trace bool
}

// chain walks the frames of the current thread, from the leaf down to its
// bottom. It returns why it could not, or "".
func (w *walker) chain(l leaf) string {
	if l.base <= w.bottom() {
		return ""
	}
	w.skipPlainC(l.base)
	here, why := w.spotAt(l.base, l.pc, false, l)
	for why == "" {
		if w.frames >= maxFrames {
			return fmt.Sprintf("more than %d Lua frames", maxFrames)
		}
		var up spot
		down, bad := w.caller(here, l)
		if bad == "" && !down.entry && down.base > w.bottom() {
			up, why = w.spotAt(down.base, down.pc, true, l)
		}
		if here.fn != w.thread {
			w.add(w.frame(here, up, down))
		}
		if bad != "" || down.base <= w.bottom() {
			return bad
		}
		if down.entry {
			if w.leave(); w.cf == 0 {
				return fmt.Sprintf("frame %d: entered from C, but no C frame is left", w.frames)
			}
			w.segment()
		}
		w.skipPlainC(down.base)
		if down.entry {
			// The interpreter noted where it was before it called C.
			up, why = w.spotAt(down.base, w.r.u64(w.cf+w.vm.savePC), false, l)
		}
		w.resolve(up)
		here = up
	}
	return why
}

// skipPlainC passes C frames that have no Lua frame of their own.
func (w *walker) skipPlainC(base uint64) {
	for w.cf != 0 && w.plainC(w.cf, base) {
		if w.leave(); w.cf == 0 {
			return
		}
		w.segment()
	}
}

// spotAt reads the function of a frame. own says that pc lies in its code for
// sure, and not in that of its caller, as it may where the function is in C.
func (w *walker) spotAt(base, pc uint64, own bool, l leaf) (spot, string) {
	here := spot{base: base, pos: -1, slots: l.slots, trace: l.trace != 0 && base >= l.root}
	if !w.inStack(base) {
		return here, fmt.Sprintf("frame %d: its base %#x lies outside of the Lua stack", w.frames, base)
	}
	v, ok := l.slots.get(base - 16)
	here.fn = v.addr()
	if ok && v.tag() == tagThread && here.fn == w.thread {
		return here, ""
	}
	isFunc := ok && v.isFunc()
	if isFunc && w.r.is(here.fn, tagFunc) {
		if here.proto = w.vm.funcProto(w.r, here.fn); here.proto != nil {
			here.pos = here.proto.pos(pc - 4)
		}
		if here.pos < 0 && own && pc != 0 {
			here.byCode(w, pc) // another function lies by now where a closure did
		}
		return here, ""
	}
	// The snapshot may not hold the function, and a closure may have been
	// collected since the sample was taken; its bytecode is known.
	if (here.trace || own && isFunc) && here.byCode(w, pc) {
		return here, ""
	}
	// A function that returns to C: its results lie where it was. It is
	// passed, as the thread's own dummy frame is.
	if w.frames == 0 && base == l.base && l.trace == 0 && l.slots.word(base-8)&3 == linkC {
		here.fn = w.thread
		return here, ""
	}
	return here, fmt.Sprintf("frame %d: no function at its base %#x", w.frames, base)
}

// byCode takes the function from the bytecode behind which its pc lies.
func (s *spot) byCode(w *walker, pc uint64) bool {
	p := w.vm.protoOf(w.r, pc-4)
	if p == nil {
		return false
	}
	s.fn, s.proto, s.pos = 0, p, p.pos(pc-4)
	return true
}

// link is what a frame says of its caller.
type link struct {
	base  uint64
	pc    uint64 // behind the calling instruction; 0: unknown
	entry bool   // C is in between
	cont  bool   // called by an instruction that is no call
}

// caller follows the link of a frame.
func (w *walker) caller(here spot, l leaf) (link, string) {
	base := here.base
	word := l.slots.word(base - 8)
	if word&7 == linkVararg {
		// The arguments lie below, under a second frame of the same call.
		base -= word &^ 7
		if base >= here.base || !w.inStack(base) {
			return link{}, fmt.Sprintf("frame %d: its arguments lie outside of the Lua stack", w.frames)
		}
		word = l.slots.word(base - 8)
	}
	down := link{base: base - word&^7}
	switch word & 7 {
	case linkLua, linkLua + 4:
		call := ins(w.r.u32(word - 4))
		down = link{base: base - 8*(2+uint64(call.a())), pc: word}
		if word == 0 || word > addrMask {
			return link{}, fmt.Sprintf("frame %d: its return address %#x is none", w.frames, word)
		}
	case linkC, linkC + 4:
		down.entry = true
	case linkCont:
		switch l.slots.word(base - 32) {
		case contCallback:
			down.entry = true
		case contTailcall:
		default:
			down.pc, down.cont = l.slots.word(base-24), true
		}
	}
	if down.base >= here.base || down.base < w.bottom() {
		return link{}, fmt.Sprintf("frame %d: its link %#x leads nowhere", w.frames, word)
	}
	return down, ""
}
