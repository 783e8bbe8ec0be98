// Package unwind walks the native stack of another process in user space, from
// copied registers and a copied window of its stack.
//
// Rules come first: .eh_frame and .debug_frame, the pc-to-stack-size table of
// Go, the frame size that the Lua side knows for compiled traces. Where a
// function has no rules, the frame pointer or a scan of the stack may find the
// caller, if what they find is plausible. A Frame says which of these found
// its caller.
package unwind

import "github.com/spinguard/spinguard/profiler/stack"

// Code tells the frame size of JIT-compiled code that has no rules: the CFA is
// the stack pointer + frameSize, the return address lies at CFA-8.
type Code func(pc uint64) (frameSize int, ok bool)

// Method says how the caller of a frame was found.
type Method uint8

// The methods, in the order of trust.
const (
	None         Method = iota // there is no caller, or none was found
	Rules                      // call frame information
	GoTable                    // stack size from .gopclntab
	JIT                        // frame size from Code
	Trampoline                 // signal frame known by its instructions
	ReturnOnTop                // leaf without a frame: return address at the stack pointer
	FramePointer               // chain of frame pointers
	Scan                       // first return address on the stack from which the entry is reached
)

var methodNames = [...]string{"none", "rules", "go table", "jit", "trampoline", "return on top", "frame pointer", "scan"}

// String returns the name of the method.
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return "unknown"
}

// Frame is one machine frame, before it has a name.
type Frame struct {
	PC            uint64          // address in the process
	CFA           uint64          // value of the stack pointer in the caller; 0 if unknown
	ReturnAddress bool            // PC is behind a call: look up PC-1
	Signal        bool            // the trampoline of a signal handler
	Found         Method          // how the caller was found
	LeftOut       int             // so many frames were left out between this one and the one before
	Registers     stack.Registers // as they were in this frame, where known

	record bool // arm64: only the frame record is known, the stack pointer is a lower bound
}

// Lookup returns the address to name the frame by.
func (f *Frame) Lookup() uint64 {
	if f.ReturnAddress && f.PC > 0 {
		return f.PC - 1
	}
	return f.PC
}

// MaxFrames bounds the frames that are returned. A deeper stack is walked to
// its end, and loses frames in its middle.
const MaxFrames = 256

// maxDepth bounds the frames that are walked: a stack of 8 MiB in frames of
// 256 bytes.
const maxDepth = 1 << 15
