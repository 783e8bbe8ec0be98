package profiler

import (
	"fmt"

	"github.com/spinguard/spinguard/profiler/stack"
)

// nativeFrame is a frame of the machine stack before the Lua frames are put in.
type nativeFrame struct {
	stack.Frame
	vm bool // the interpreter or a trace: it runs the Lua frames of one segment
}

// merge puts Lua frames in the place of the machine frames that ran them. Both
// lists are leaf first. All Lua functions that call each other without C in
// between share one machine frame: they are one segment. The frame itself is
// dropped: which of the interpreter's handlers ran says nothing that the Lua
// line does not say. work names what the VM was doing besides running Lua.
func merge(native []nativeFrame, segments [][]stack.Frame, work, truncated string) stack.Stack {
	out := stack.Stack{Truncated: truncated, Frames: make([]stack.Frame, 0, len(native)+8*len(segments))}
	for i := range native {
		f := &native[i]
		if !f.vm {
			out.Frames = append(out.Frames, f.Frame)
			continue
		}
		if work != "" {
			out.Frames = append(out.Frames, stack.Frame{Kind: stack.VM, Function: "[" + work + "]"})
			work = ""
		}
		if len(segments) == 0 {
			out.Frames = append(out.Frames, stack.Frame{Kind: stack.VM, Function: "[lua]", Address: f.Address})
			continue
		}
		out.Frames = append(out.Frames, segments[0]...)
		segments = segments[1:]
	}
	return leftOver(out, segments)
}

// leftOver deals with Lua frames whose machine frame was not reached: below a
// cut they are still the truth; else something was misread, and it is said.
func leftOver(s stack.Stack, segments [][]stack.Frame) stack.Stack {
	if len(segments) == 0 {
		return s
	}
	if s.Truncated == "" {
		s.Truncated = fmt.Sprintf("%d Lua segments without machine frame", len(segments))
	}
	for _, seg := range segments {
		s.Frames = append(s.Frames, seg...)
	}
	return s
}
