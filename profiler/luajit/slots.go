package luajit

// slots reads the slots of a Lua stack. Inside a trace, part of the stack
// exists only in the trace's registers and constants: what is known of those
// slots lies over the memory, and what isn't known stays unknown.
type slots struct {
	r       reader
	known   map[uint64]tv
	unknown map[uint64]bool
	from    uint64 // slots from here up were never written by the trace; 0: all are in memory
}

// get returns the content of the slot at an address.
func (s *slots) get(addr uint64) (tv, bool) {
	if v, ok := s.known[addr]; ok {
		return v, true
	}
	if s.unknown[addr] || (s.from != 0 && addr >= s.from) {
		return 0, false
	}
	b := s.r.bytes(addr, 8)
	if b == nil {
		return 0, false
	}
	return tv(le64(b)), true
}

// began returns what a slot of the trace's own frame held when the trace
// began, where its present value is not known.
func (s *slots) began(addr uint64) (tv, bool) {
	if s.from != 0 && addr >= s.from {
		return 0, false
	}
	b := s.r.bytes(addr, 8)
	if b == nil {
		return 0, false
	}
	return tv(le64(b)), true
}

// word is get for links and functions: unknown is 0, which is neither.
func (s *slots) word(addr uint64) uint64 {
	v, _ := s.get(addr)
	return uint64(v)
}
