package luajit

import (
	"encoding/binary"
	"sort"
	"sync"
)

// trace is one compiled trace.
type trace struct {
	addr     uint64
	no       int
	mcode    uint64
	size     uint64
	spadjust uint64 // what it adds to the machine stack
	snap     uint64
	snapmap  uint64
	nmap     int
	ir       uint64 // biased: reference n lies at ir + 8*n
	nins     int
	nk       int
	mcloop   uint64 // offset of the loop in the code, 0: none
	startpc  uint64
	link     int
}

const (
	maxTraces = 1 << 16
	maxMcode  = 1 << 20
	refBias   = 0x8000
)

func (t *trace) holds(pc uint64) bool { return pc >= t.mcode && pc-t.mcode < t.size }

// loadTrace reads the trace with a number and checks that it is one.
func (vm *VM) loadTrace(r reader, no int) *trace {
	array := vm.traceArray(r)
	if no <= 0 || no >= array.size {
		return nil
	}
	return vm.parseTrace(r, r.u64(array.addr+8*uint64(no)), no)
}

func (vm *VM) parseTrace(r reader, addr uint64, no int) *trace {
	if addr == 0 || addr&7 != 0 || addr > addrMask {
		return nil
	}
	m := int(vm.mcode) // the fields around mcode have fixed distances from it
	b := r.bytes(addr, m+0x18)
	le := binary.LittleEndian
	if b == nil || b[objType] != tagTrace || int(le.Uint16(b[m+0x10:])) != no {
		return nil
	}
	t := &trace{
		addr: addr, no: no, mcode: le.Uint64(b[m:]), size: uint64(le.Uint32(b[m-4:])),
		spadjust: uint64(le.Uint16(b[m+0xe:])), link: int(le.Uint16(b[m+0x12:])),
		startpc: le.Uint64(b[m-16:]), snapmap: le.Uint64(b[m-32:]), snap: le.Uint64(b[m-40:]),
		nmap: int(le.Uint32(b[m-44:])), ir: le.Uint64(b[m-56:]), nins: int(le.Uint32(b[0x0c:])),
		nk: int(le.Uint32(b[m-48:])), mcloop: uint64(le.Uint32(b[m+8:])),
	}
	if t.mcode == 0 || t.size == 0 || t.size > maxMcode || t.mcode > addrMask {
		return nil
	}
	return t
}

// traceArray returns the array of all traces: its address and, behind it in
// the JIT state, its size.
func (vm *VM) traceArray(r reader) (array struct {
	addr uint64
	size int
}) {
	if vm.mcode == 0 {
		return array
	}
	at := vm.global + uint64(vm.trace)
	array.addr, array.size = r.u64(at), int(min(r.u32(at+12), maxTraces))
	return array
}

// traceTable finds traces by address of their machine code.
type traceTable struct {
	mu       sync.Mutex
	pointers []uint64 // the array as it was read last
	ranges   []traceRange
	details  map[uint64]*traceDetail // by address of the trace
}

// traceDetail is what a trace's snapshots say. It does not change.
type traceDetail struct {
	t      trace // whose it is; another trace may take its address
	snaps  []snapshot
	places []place
}

// detail returns the snapshots of a trace and their places, from the cache
// where the trace is the same.
func (vm *VM) detail(r reader, t *trace) *traceDetail {
	const most = 256
	table := vm.traces
	table.mu.Lock()
	d := table.details[t.addr]
	table.mu.Unlock()
	if d != nil && d.t == *t {
		return d
	}
	d = &traceDetail{t: *t, snaps: vm.snapshots(r, t)}
	if d.snaps == nil {
		return d
	}
	if d.places = vm.places(r, t, d.snaps); d.places == nil {
		return d
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	if table.details == nil || len(table.details) >= most {
		table.details = map[uint64]*traceDetail{}
	}
	table.details[t.addr] = d
	return d
}

type traceRange struct {
	lo, hi uint64
	no     int
}

// traceAt returns the trace whose machine code holds the address, or nil.
func (vm *VM) traceAt(r reader, pc uint64) *trace {
	if vm.mcode == 0 || (pc >= vm.lo && pc < vm.hi) {
		return nil
	}
	t := vm.traces
	t.mu.Lock()
	defer t.mu.Unlock()
	if hit := vm.traceInTable(r, pc); hit != nil {
		return hit
	}
	if !vm.refreshTraces(vm.background()) {
		return nil
	}
	return vm.traceInTable(r, pc)
}

func (vm *VM) traceInTable(r reader, pc uint64) *trace {
	rs := vm.traces.ranges
	i := sort.Search(len(rs), func(i int) bool { return rs[i].hi > pc })
	if i == len(rs) || rs[i].lo > pc {
		return nil
	}
	// It may be gone since, and another in its place.
	if t := vm.loadTrace(r, rs[i].no); t != nil && t.holds(pc) {
		return t
	}
	return nil
}

// refreshTraces reads the traces that came since the last time. It returns
// false if the array has not changed.
func (vm *VM) refreshTraces(r reader) bool {
	array := vm.traceArray(r)
	b := r.bytes(array.addr, 8*array.size)
	if array.addr == 0 || b == nil {
		return false
	}
	pointers := make([]uint64, array.size)
	for i := range pointers {
		pointers[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	t := vm.traces
	same := map[int]traceRange{}
	for _, old := range t.ranges {
		same[old.no] = old
	}
	changed := len(pointers) != len(t.pointers)
	var ranges []traceRange
	for no, p := range pointers {
		old, known := same[no]
		if known && no < len(t.pointers) && t.pointers[no] == p {
			ranges = append(ranges, old)
			continue
		}
		if no < len(t.pointers) && t.pointers[no] == p {
			continue // was no trace, and is none
		}
		changed = true
		if n := vm.parseTrace(r, p, no); n != nil {
			ranges = append(ranges, traceRange{n.mcode, n.mcode + n.size, no})
		}
	}
	sort.Slice(ranges, func(i, j int) bool { return ranges[i].lo < ranges[j].lo })
	t.pointers, t.ranges = pointers, ranges
	return changed
}
