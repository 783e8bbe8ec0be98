package profiler

import "github.com/spinguard/spinguard/profiler/stack"

// Result is what one sample says.
type Result struct {
	Stack stack.Stack
	// State is what the Lua VM was doing: "interpreter", "trace", "c", "gc",
	// "exit", "record", "optimise", "assemble"; empty outside of any VM.
	State string
	// Thread is the address of the running coroutine's lua_State, Request the
	// value of its exdata: on OpenResty the ngx_http_request_t. 0: not known.
	Thread, Request uint64
	lower           uint64
}

// Lower is a fingerprint of the lower part of the native stack: everything
// from the entry of the process up to the event loop's dispatcher at the
// instant at which it called the handler that is running. It stays the same
// for as long as that handler runs, whatever the handler does, and changes
// from one handler to the next, even within one turn of the loop. 0: not
// known, which proves nothing.
func (r Result) Lower() uint64 { return r.lower }
