package profiler

import (
	"cmp"
	"slices"

	"github.com/spinguard/spinguard/profiler/stack"
)

// nativeFrame is a frame of the machine stack before the Lua frames are put in.
type nativeFrame struct {
	stack.Frame
	cfa     uint64
	vm      bool // the interpreter or a trace: it runs the Lua frames of one segment
	leftOut bool // frames were left out below this one
}

// leftOutFrame stands for the middle of a deep recursion.
var leftOutFrame = stack.Frame{Kind: stack.Native, Function: "[frames left out]"}

// segment holds the Lua functions that called each other without C in
// between, leaf first. They share one machine frame, the one that ends at cfa.
type segment struct {
	cfa    uint64
	frames []stack.Frame
}

// merge puts the Lua frames in the place of the machine frames that ran them.
// Both lists are leaf first. The machine frame itself is dropped: which of the
// interpreter's handlers ran says nothing that the Lua line does not say. work
// names what the VM was doing besides running Lua.
func merge(native []nativeFrame, segments []segment, work, truncated string) stack.Stack {
	out := stack.Stack{Truncated: truncated, Frames: make([]stack.Frame, 0, len(native)+8*len(segments))}
	placed, missing := false, false
	// The segments of several VMs lie on one machine stack.
	slices.SortStableFunc(segments, func(a, b segment) int { return cmp.Compare(a.cfa, b.cfa) })
	for i := range native {
		f := &native[i]
		if f.leftOut {
			out.Frames = append(out.Frames, leftOutFrame)
			out, segments = skipped(out, segments, f.cfa)
		}
		if !f.vm {
			out.Frames = append(out.Frames, f.Frame)
			continue
		}
		if work != "" {
			out.Frames = append(out.Frames, stack.Frame{Kind: stack.VM, Function: "[" + work + "]"})
			work = ""
		}
		k := slices.IndexFunc(segments, func(s segment) bool { return s.cfa == f.cfa })
		if k < 0 {
			if i+1 == len(native) || !native[i+1].vm { // else a helper inside of the interpreter
				out.Frames = append(out.Frames, stack.Frame{Kind: stack.VM, Function: "[lua]", Address: f.Address})
				missing = placed // one that is just entered or left has none yet, or no more
			}
			continue
		}
		out = splice(out, segments[:k], "Lua frames without machine frame")
		out.Frames = append(out.Frames, segments[k].frames...)
		segments, placed = segments[k+1:], true
	}
	if missing && out.Truncated == "" {
		out.Truncated = "Lua frames missing at a machine frame"
	}
	// Below a cut the rest is still the truth.
	return splice(out, segments, "Lua frames below the machine stack")
}

// splice adds segments whose machine frames were not seen. If nothing else
// explains that, something was misread, and the stack must say so.
func splice(s stack.Stack, segments []segment, why string) stack.Stack {
	for _, seg := range segments {
		if len(seg.frames) == 0 {
			continue
		}
		if s.Truncated == "" {
			s.Truncated = why
		}
		s.Frames = append(s.Frames, seg.frames...)
	}
	return s
}

// skipped adds the segments whose machine frames were left out.
func skipped(s stack.Stack, segments []segment, cfa uint64) (stack.Stack, []segment) {
	for len(segments) > 0 && segments[0].cfa < cfa {
		s.Frames = append(s.Frames, segments[0].frames...)
		segments = segments[1:]
	}
	return s, segments
}
