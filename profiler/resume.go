package profiler

import (
	"path"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// savedByVM is where LuaJIT's C frame keeps its caller's registers, relative
// to the frame's end.
var savedByVM = [...]struct {
	register int
	below    uint64
}{{stack.RIP, 8}, {stack.RBP, 16}, {stack.RBX, 24}, {stack.R15, 32}, {stack.R14, 40}}

// lost returns the index of the first frame whose code is in no mapping that
// is known, or in one without a file that is neither a known trace nor PCRE's:
// a trace that is newer than what was read, or gone since. Its caller was
// guessed, if there is one.
func (p *Process) lost(frames []unwind.Frame, native []nativeFrame, truncated string) (int, bool) {
	for i := range frames {
		f := &native[i]
		switch {
		case f.vm:
			// Its mapping may have been seen while it was written, not run.
			if i+1 == len(frames) && truncated != "" {
				return i, true
			}
		case f.Kind == stack.Unknown && !p.modules.isCode(f.Address):
			return i, true
		case f.Kind == stack.PCRE && (i+1 == len(frames) || !calledByPCRE(&native[i+1])):
			return i, true
		}
	}
	return 0, false
}

// calledByPCRE says that a frame belongs to PCRE, which alone calls what its
// compiler made.
func calledByPCRE(caller *nativeFrame) bool {
	return caller.Kind == stack.PCRE || caller.Mapping != nil && strings.Contains(path.Base(caller.Mapping.Path), "pcre")
}

// resume goes on with a walk of the machine stack that ended at code which is
// in no mapping that is known. A program that compiles and throws away traces
// all the time has them where nothing was a moment ago. The VM itself knows
// where the C frame ends that such code runs on. It returns the frames with
// those that were gained, and false if there is nothing to gain.
func (p *Process) resume(frames []unwind.Frame, lua luaStack, mem procmem.Memory) ([]unwind.Frame, string, bool) {
	last := &frames[len(frames)-1]
	sp := last.Registers.SP()
	var cfa uint64
	for _, s := range lua.segments {
		if s.cfa > sp && (cfa == 0 || s.cfa < cfa) {
			cfa = s.cfa
		}
	}
	if cfa == 0 {
		return frames, "", false
	}
	var regs stack.Registers
	regs.Set(stack.RSP, cfa)
	for _, s := range savedByVM {
		v, err := procmem.Uint64(mem, cfa-s.below)
		if err != nil {
			return frames, "", false
		}
		regs.Set(s.register, v)
	}
	more, truncated := p.modules.unwinder.Unwind(regs, mem, p.vms.code)
	if len(more) == 0 {
		return frames, "", false
	}
	last.CFA = cfa
	more[0].ReturnAddress = true
	return append(frames, more...), truncated, true
}
