package luajit

// layout holds what was read out of one interpreter's code. Offsets are bytes.
type layout struct {
	lo, hi   uint64 // the interpreter's code
	tailCall uint64 // where a tail call has loaded its caller's address; 0: not seen

	handlers []uint64 // where the code of its instructions begins

	// The interpreter's frame on the machine stack, from its stack pointer up.
	frameSize uint64 // from the stack pointer to the caller's (CFA)
	jitExtra  uint64 // what a trace adds to it before its own spills
	saveL     uint64
	savePC    uint64
	saveNres  uint64
	saveCF    uint64

	// lua_State
	glref, base, top, maxstack, stack, cframe, exdata int64 // exdata: -1 if there is none

	// global_State
	dispatch, vmstate, curL, jitBase, trace int64

	funcPC    int64 // GCfunc.pc
	strLen    int64 // GCstr.len
	protoSize int64 // bytecode starts here
	mcode     int64 // GCtrace.mcode; 0: no JIT compiler

	// jit_State, relative to global_State; 0 where unknown
	parent, exitno int64
}

// Fields of GCproto. Those behind the constants are the last ones of the
// structure, so they are given from its end.
const (
	protoParams = 0x0a
	protoSizeBC = 0x0c
	protoK      = 0x20
)

func (l *layout) sizekgc() int64   { return l.protoSize - 56 }
func (l *layout) sizept() int64    { return l.protoSize - 48 }
func (l *layout) sizeuv() int64    { return l.protoSize - 44 }
func (l *layout) chunkname() int64 { return l.protoSize - 40 }
func (l *layout) firstline() int64 { return l.protoSize - 32 }
func (l *layout) numline() int64   { return l.protoSize - 28 }
func (l *layout) lineinfo() int64  { return l.protoSize - 24 }
func (l *layout) uvinfo() int64    { return l.protoSize - 16 }
func (l *layout) varinfo() int64   { return l.protoSize - 8 }
