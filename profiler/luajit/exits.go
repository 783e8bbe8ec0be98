package luajit

import "golang.org/x/arch/x86/x86asm"

// placeByExits finds where in the machine code the snapshots of an older
// build belong, by the jumps out of the trace: each leads to a stub with the
// number of its snapshot, in growing order.
func (vm *VM) placeByExits(r reader, t *trace, snaps []snapshot) {
	code := r.bytes(t.mcode, int(t.size))
	done, last, compare := 0, 0, 0 // snapshots placed; end of the last exit; last comparison
	for at := 0; at < len(code); {
		i, err := x86asm.Decode(code[at:], 64)
		if err != nil || i.Len == 0 {
			break
		}
		start := at
		at += i.Len
		switch i.Op {
		case x86asm.CMP, x86asm.TEST, x86asm.UCOMISD, x86asm.COMISD:
			compare = start
			continue
		case x86asm.JMP, x86asm.CALL:
			continue
		}
		rel, ok := i.Args[0].(x86asm.Rel)
		target := int64(at) + int64(rel)
		if !ok || (target >= 0 && target < int64(len(code))) {
			continue
		}
		n := exitNumber(r, t.mcode+uint64(target))
		if n < 0 {
			n = nextLinked(snaps, done)
		}
		for n < len(snaps) && done < n {
			done++
			snaps[done].mcofs = last
			if compare > last && vm.compares(r, t, snaps, done) {
				snaps[done].mcofs = compare
			}
		}
		last = at
	}
	for done++; done < len(snaps); done++ {
		snaps[done].mcofs = last
	}
}

// exitNumber reads the number that an exit stub pushes, in two bytes: the low
// one, then, behind a jump over the other stubs, the high one.
func exitNumber(r reader, stub uint64) int {
	const push, jump = 0x6a, 0xeb
	b := r.bytes(stub, 4)
	if b == nil || b[0] != push {
		return -1
	}
	high := b[2:]
	if b[2] == jump {
		high = r.bytes(stub+4+uint64(b[3]), 2)
	}
	if high == nil || high[0] != push {
		return -1
	}
	return int(high[1])<<8 | int(b[1])
}

// nextLinked returns the first snapshot from one on at which another trace
// goes on: its exits do not lead to a stub any more.
func nextLinked(snaps []snapshot, from int) int {
	for n := from; n < len(snaps); n++ {
		if snaps[n].linked {
			return n
		}
	}
	return len(snaps)
}
