package luajit

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// findDispatch returns where the dispatch table lies behind the global state:
// a long run of pointers into one file's code, as nothing else has.
func findDispatch(r reader, maps procmem.Maps, global uint64) (offset int64, target uint64, ok bool) {
	const (
		reach  = 64 << 10
		length = 128
	)
	b := r.partial(global, reach)
	var in procmem.Mapping
	run := 0
	for off := 0; off+8 <= len(b); off += 8 {
		p := binary.LittleEndian.Uint64(b[off:])
		switch {
		case run > 0 && p >= in.Start && p < in.End:
			run++
		default:
			run = 0
			if m, found := maps.Find(p); found && m.Exec && m.Inode != 0 {
				in, run = m, 1
			}
		}
		if run == length {
			start := off - 8*(length-1)
			return int64(start), binary.LittleEndian.Uint64(b[start:]), true
		}
	}
	return 0, 0, false
}

// readHandlers lists where the code of the instructions and the built-in
// functions begins, in order.
func readHandlers(r reader, l *layout, table uint64) []uint64 {
	const most = 1024
	var starts []uint64
	for b := r.partial(table, 8*most); len(b) >= 8; b = b[8:] {
		p := le64(b)
		if p < l.lo || p >= l.hi {
			break
		}
		starts = append(starts, p)
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}

// derive reads the layout out of the interpreter's code.
func derive(r reader, maps procmem.Maps, c candidate) (*layout, error) {
	dispatch, target, ok := findDispatch(r, maps, c.global)
	if !ok {
		return nil, unsupported("dispatch table of the interpreter: not found behind the global state")
	}
	l := &layout{exdata: -1}
	if l.lo, l.hi, ok = functionRange(r, maps, target); !ok {
		return nil, unsupported("interpreter: the image has no unwind entry for it")
	}
	const maxCode = 1 << 18
	if l.hi-l.lo > maxCode || l.hi-l.lo < 4096 {
		return nil, unsupported(fmt.Sprintf("interpreter: %d bytes of code, which no build has", l.hi-l.lo))
	}
	l.handlers = readHandlers(r, l, c.global+uint64(dispatch))
	code := r.bytes(l.lo, int(l.hi-l.lo))
	if code == nil {
		return nil, unsupported("interpreter: its code can't be read")
	}
	for _, step := range []func(*layout, []byte) error{
		deriveCall, deriveStack, deriveProto, deriveOpcodes, deriveTraces, deriveExit, deriveTailCall,
	} {
		if err := step(l, code); err != nil {
			return nil, err
		}
	}
	if l.strLen, ok = findStringLength(r, c.global); !ok {
		return nil, unsupported("strings: no name of a metamethod in the global state")
	}
	if l.dispatch != dispatch {
		return nil, unsupported(fmt.Sprintf("dispatch table: code says %#x, memory %#x", l.dispatch, dispatch))
	}
	return l, nil
}

// deriveStack finds lua_State.maxstack in the stack checks of the function
// headers: cmp rcx, [rbp+x].
func deriveStack(l *layout, code []byte) error {
	count := map[int64]int{}
	for _, i := range find(code, "48 3b 4d ??") {
		count[int64(int8(code[i+3]))]++
	}
	best := 0
	for off, n := range count {
		if n > best && off > l.top && off < minThread {
			l.maxstack, best = off, n
		}
	}
	if best < 2 {
		return unsupported("stack limit of a thread: no check of it in the interpreter")
	}
	return nil
}

// deriveProto finds the size of GCproto in the header of a Lua function: the
// constants and the number of parameters are loaded relative to its bytecode.
func deriveProto(l *layout, code []byte) error {
	for _, i := range find(code, "4c 8b 7b ??") {
		fromK := protoK - 4 - int64(int8(code[i+3]))
		for _, j := range find(code[i:min(i+48, len(code))], "0f b6 4b ??") {
			if fromN := protoParams - 4 - int64(int8(code[i+j+3])); fromN == fromK && fromK >= 0x60 && fromK <= 0x80 {
				l.protoSize = fromK
				return nil
			}
		}
	}
	return unsupported("function prototypes: their size is not seen in the interpreter")
}

// deriveOpcodes proves the numbers of the instructions that names are derived
// from: the interpreter compares with GGET and GSET, and writes JMP.
func deriveOpcodes(_ *layout, code []byte) error {
	for _, p := range []string{"80 7b fc 36", "80 7b fc 37", "c6 43 fc 58"} {
		if len(find(code, p)) == 0 {
			return unsupported("bytecode: its instructions have other numbers")
		}
	}
	return nil
}

// deriveTraces finds how the interpreter enters a compiled trace. Builds
// without a JIT compiler don't.
func deriveTraces(l *layout, code []byte) error {
	const enter = "49 8b 8e ?? ?? ?? ?? 48 8b 04 c1 48 8b 40 ?? 48 8b 6c 24 ?? 49 89 96 ?? ?? ?? ??"
	hits := find(code, enter)
	if len(hits) == 0 {
		l.jitBase = l.curL + 8
		return nil
	}
	b := code[hits[0]:]
	l.trace = l.dispatch + disp32(b[3:])
	l.mcode = int64(int8(b[14]))
	l.jitBase = l.dispatch + disp32(b[23:])
	if subs := find(b[:min(64, len(b))], "48 83 ec ?? 4c 89"); len(subs) > 0 {
		l.jitExtra = uint64(b[subs[0]+3])
	}
	if uint64(b[19]) != l.saveL || l.mcode < 0x50 || l.jitExtra == 0 || l.jitBase < 0 {
		return unsupported("entry of traces: not as known")
	}
	return nil
}

// tailCallSize covers the rest of the code of a tail call.
const tailCallSize = 0xc0

// deriveTailCall finds where a tail call has loaded the return address of the
// frame that it replaces.
func deriveTailCall(l *layout, code []byte) error {
	for _, i := range find(code, "48 8b 5a f8 f7 c3 03 00 00 00 0f 85 ?? ?? ?? ?? 48 89 6a f0") {
		l.tailCall = l.lo + uint64(i)
	}
	return nil
}

// deriveExit finds where a leaving trace notes its number and its exit.
func deriveExit(l *layout, code []byte) error {
	const exit = "41 8b 8e ?? ?? ?? ?? 41 c7 86 ?? ?? ?? ?? fc ff ff ff 41 89 86 ?? ?? ?? ?? 41 89 8e ?? ?? ?? ??"
	for _, i := range find(code, exit) {
		l.exitno = l.dispatch + disp32(code[i+21:])
		l.parent = l.dispatch + disp32(code[i+28:])
	}
	return nil
}

func disp32(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) }

// findStringLength finds where a string keeps its length by two strings that
// every VM holds in its global state: the names of metamethods.
func findStringLength(r reader, global uint64) (int64, bool) {
	known := map[string]uint32{"__index\x00": 7, "__newindex\x00": 10}
	agree := map[int64]int{}
	b := r.partial(global, 0x800)
	for off := 0; off+8 <= len(b); off += 8 {
		addr := le64(b[off:])
		if !r.is(addr, tagStr) {
			continue
		}
		for name, length := range known {
			if string(r.bytes(addr+strData, len(name))) != name {
				continue
			}
			for _, at := range [...]int64{0x14, 0x10, 0x0c} {
				if r.u32(addr+uint64(at)) == length {
					if agree[at]++; agree[at] == len(known) {
						return at, true
					}
				}
			}
		}
	}
	return 0, false
}
