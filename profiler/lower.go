package profiler

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// role is what a function does in the event loop of its program.
type role uint8

const (
	noRole     role = iota
	eventLoop       // one call of it is one turn; what it calls dispatches events
	dispatcher      // calls one handler after the other
)

// loopFunctions are the functions by whose exported names the loop of a
// program is recognised. nginx's poll methods (ngx_epoll_process_events and
// its like) are static: they are known by being called by the loop.
var loopFunctions = map[string]role{
	"ngx_process_events_and_timers": eventLoop,
	"ngx_event_expire_timers":       dispatcher,
	"ngx_event_process_posted":      dispatcher,
	// HAProxy.
	"run_poll_loop":          eventLoop,
	"process_runnable_tasks": dispatcher,
	"run_tasks_from_lists":   dispatcher,
	"fd_update_events":       dispatcher,
}

// loopRange is the code of one of the loopFunctions.
type loopRange struct {
	start, end uint64
	role       role
}

// loopFinder finds the dispatcher in a native stack. It knows one process and
// does not change.
type loopFinder struct {
	ranges []loopRange
	seed   maphash.Seed
}

func (l *loopFinder) role(pc uint64) role {
	for _, r := range l.ranges {
		if pc >= r.start && pc < r.end {
			return r.role
		}
	}
	return noRole
}

// dispatcher returns the index of the frame that called the handler, leaf
// first. The outermost loop counts: a handler may run a loop of its own.
func (l *loopFinder) dispatcher(frames []unwind.Frame) (int, bool) {
	for i := len(frames) - 1; i >= 0; i-- {
		switch l.role(frames[i].Lookup()) {
		case eventLoop:
			return l.innermost(frames, max(i-1, 0)), true
		case dispatcher:
			return l.innermost(frames, i), true
		}
	}
	return 0, false
}

// innermost follows dispatchers that dispatch to dispatchers.
func (l *loopFinder) innermost(frames []unwind.Frame, i int) int {
	for i > 0 && l.role(frames[i-1].Lookup()) == dispatcher {
		i--
	}
	return i
}

// keptRegisters are those in which a dispatcher holds its event across the
// call of a handler. r12 and r13 could, too, but a LuaJIT trace saves them
// where no unwind rule tells; a fingerprint must not depend on whether a
// handler is in a trace at the moment.
var keptRegisters = [...]int{stack.RBX, stack.RBP, stack.R14, stack.R15}

// lowerMax bounds the bytes of stack above the dispatcher that count.
const lowerMax = 4096

// lower makes the fingerprint, see Result.Lower. Whatever lies at and above
// the dispatcher's stack pointer belongs to functions that wait for the
// handler to return: nobody writes there. The registers that the dispatcher
// keeps across the call are the same for as long. Frames below come and go.
func (l *loopFinder) lower(frames []unwind.Frame, mem procmem.Memory) uint64 {
	d, ok := l.dispatcher(frames)
	if !ok {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(l.seed)
	for i := d; i < len(frames); i++ {
		word(&h, frames[i].PC)
		word(&h, frames[i].Registers.SP())
	}
	for _, n := range keptRegisters {
		v, known := frames[d].Registers.Get(n)
		if !known {
			v = 0
		}
		word(&h, v)
	}
	from, to := frames[d].Registers.SP(), frames[len(frames)-1].Registers.SP()
	if to > from {
		buf := make([]byte, min(to-from, lowerMax))
		if mem.ReadMemory(from, buf) != nil {
			return 0
		}
		h.Write(buf)
	}
	// 0 means that it is not known.
	return h.Sum64() | 1
}

func word(h *maphash.Hash, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	h.Write(b[:])
}
