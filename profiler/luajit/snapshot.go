package luajit

import "encoding/binary"

// snapshot is what a trace restores if it leaves at one of its guards: where
// in the bytecode, and which slots.
type snapshot struct {
	ref     uint16 // first IR instruction behind it
	mcofs   int
	entries []uint32
	pc      uint64 // of the instruction to go on with
	delta   uint64 // slots from the trace's base to the frame's base
}

// Flags of a snapshot's entries.
const (
	snapFrame     = 0x010000
	snapCont      = 0x020000
	snapNoRestore = 0x040000
)

const snapSize = 12

// snapshots reads those of a trace. It returns nil if they are not in the
// known form: then nothing inside the trace can be told apart.
func (vm *VM) snapshots(r reader, t *trace) []snapshot {
	const most = 1 << 16
	if t.snapmap <= t.snap || (t.snapmap-t.snap)%snapSize != 0 || t.nmap <= 0 || t.nmap > most {
		return nil
	}
	count := int((t.snapmap - t.snap) / snapSize)
	if count > most {
		return nil
	}
	b, m := r.bytes(t.snap, count*snapSize), r.bytes(t.snapmap, 4*t.nmap)
	if b == nil || m == nil {
		return nil
	}
	le := binary.LittleEndian
	var snaps []snapshot
	next, last := 0, 0
	for ; len(b) >= snapSize; b = b[snapSize:] {
		at, mcofs, nent := int(le.Uint32(b)), int(le.Uint16(b[6:])), int(b[10])
		// Entries follow each other without a gap, code offsets grow.
		if at != next || mcofs < last || at+nent+2 > t.nmap {
			return nil
		}
		s := snapshot{ref: le.Uint16(b[4:]), mcofs: mcofs}
		for i := range nent {
			s.entries = append(s.entries, le.Uint32(m[4*(at+i):]))
		}
		end := le.Uint64(m[4*(at+nent):])
		s.pc, s.delta = end>>8, end&0xff
		snaps = append(snaps, s)
		next, last = at+nent+2, mcofs
	}
	return snaps
}

// snapshotAt returns the last snapshot that was taken before the offset into
// the machine code.
func snapshotAt(snaps []snapshot, off uint64) int {
	at := 0
	for i, s := range snaps {
		if uint64(s.mcofs) <= off {
			at = i
		}
	}
	return at
}
