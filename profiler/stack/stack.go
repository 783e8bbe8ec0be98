// Package stack holds the words in which every part of the profiler speaks of
// a sampled call stack: registers, frames, values and whole stacks. It is data
// only and imports nothing of the project.
package stack

import "fmt"

// Kind says what sort of code a frame ran.
type Kind uint8

// The kinds of frames, in the order in which the pictures list them.
const (
	Unknown Kind = iota // code that belongs to no known mapping
	Native              // C, C++, Rust or Go machine code
	Kernel              // kernel code
	Lua                 // a Lua function run by the interpreter
	Trace               // a Lua function inside a compiled LuaJIT trace
	Builtin             // a C function or a VM built-in that Lua called
	VM                  // the Lua VM at its own work: GC, recording, compiling, trace exit
	PCRE                // code compiled by PCRE's JIT
)

var kindNames = [...]string{"unknown", "native", "kernel", "lua", "trace", "builtin", "vm", "pcre"}

// String returns the lower-case name of the kind, as used in JSON and labels.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// KindOf is the inverse of Kind.String; unknown names give Unknown.
func KindOf(name string) Kind {
	for i, n := range kindNames {
		if n == name {
			return Kind(i)
		}
	}
	return Unknown
}

// Value is one argument or local variable of a Lua frame.
type Value struct {
	Name     string `json:"name"`     // from the debug information; "(slot 3)" without
	Type     string `json:"type"`     // number, string, boolean, nil, table, function, ...
	Text     string `json:"text"`     // printable: nan, "abc", true, table(3), ...
	Argument bool   `json:"argument"` // a parameter of the function, not a local
	Addr     uint64 `json:"-"`        // of a table, in the process; else 0
}

// Mapping is the memory mapping that a native address lies in.
type Mapping struct {
	Start, Limit uint64 // addresses in the process
	Offset       uint64 // file offset of Start
	Path         string // as the process sees it
	BuildID      string // hex; empty where the image has none
}

// Frame is one entry of a call stack.
type Frame struct {
	Kind      Kind
	Function  string   // "gcd", "ngx_event_expire_timers", "nginx+0x4a210"
	File      string   // Lua chunk ("wrr.lua") or source file; empty if unknown
	Line      int      // line being executed, 0 if unknown
	StartLine int      // first line of the function, 0 if unknown
	Loops     []int    // LuaJIT frames only: lines at which the loops around Line begin, innermost first
	Address   uint64   // program counter in the process, 0 for Lua frames
	Mapping   *Mapping // native frames only; nil if none
	Values    []Value  // Lua frames only: arguments first, then locals
}

// Place returns "file:line" when both are known, else the function's name.
func (f Frame) Place() string {
	if f.File != "" && f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.Function
}

// Stack is one sampled call stack, leaf first.
type Stack struct {
	Frames []Frame
	// Truncated says why the stack ends before the process entry, such as
	// "frame 7: no rule for nginx+0x4a210" or "window cut at 16384 bytes".
	// Empty: the stack is whole.
	Truncated string
}
