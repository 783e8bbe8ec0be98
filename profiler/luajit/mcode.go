package luajit

import "golang.org/x/arch/x86/x86asm"

// lastExit returns the offset behind the last jump out of the trace between
// two offsets, or the first offset if there is none.
func lastExit(code []byte, from, to uint64) uint64 {
	split := from
	if to > uint64(len(code)) {
		return split
	}
	for at := from; at < to; {
		i, err := x86asm.Decode(code[at:], 64)
		if err != nil || i.Len == 0 {
			return split
		}
		at += uint64(i.Len)
		if rel, ok := i.Args[0].(x86asm.Rel); ok && i.Op != x86asm.JMP && i.Op != x86asm.CALL {
			if target := int64(at) + int64(rel); target < 0 || target >= int64(len(code)) {
				split = at
			}
		}
	}
	return split
}
