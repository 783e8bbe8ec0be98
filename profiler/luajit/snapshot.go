package luajit

import "encoding/binary"

// snapshot is what a trace restores if it leaves at one of its guards: where
// in the bytecode, and which slots.
type snapshot struct {
	ref     uint16 // first IR instruction behind it
	mcofs   int
	linked  bool // another trace goes on where this one leaves
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

// snapForm is where the fields of a snapshot lie. Builds before 2021 did not
// note where in the machine code a snapshot belongs.
type snapForm struct{ mcofs, nent, count int }

var snapForms = [...]snapForm{{mcofs: 6, nent: 10, count: 11}, {mcofs: -1, nent: 8, count: 9}}

// snapshots reads those of a trace. It returns nil if they are not in a known
// form: then nothing inside the trace can be told apart.
func (vm *VM) snapshots(r reader, t *trace) []snapshot {
	const most = 1 << 13
	if t.snapmap <= t.snap || (t.snapmap-t.snap)%snapSize != 0 || t.nmap <= 0 || t.nmap > 8*most {
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
	for _, form := range snapForms {
		snaps := form.parse(b, m)
		if snaps != nil && form.mcofs < 0 {
			vm.placeByExits(r, t, snaps)
		}
		if snaps != nil {
			return snaps
		}
	}
	return nil
}

// parse reads snapshots of this form. They prove it: their entries follow
// each other without a gap, and the offsets into the code grow.
func (f snapForm) parse(b, m []byte) []snapshot {
	le := binary.LittleEndian
	var snaps []snapshot
	next, last := 0, 0
	for ; len(b) >= snapSize; b = b[snapSize:] {
		at, nent, mcofs := int(le.Uint32(b)), int(b[f.nent]), last
		if f.mcofs >= 0 {
			mcofs = int(le.Uint16(b[f.mcofs:]))
		}
		if at != next || mcofs < last || 4*(at+nent+2) > len(m) {
			return nil
		}
		s := snapshot{ref: le.Uint16(b[4:]), mcofs: mcofs, linked: b[f.count] == 0xff}
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
