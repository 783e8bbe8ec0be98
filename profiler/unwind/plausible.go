package unwind

import "sync"

// plausible says whether an address can be a return address: it lies in code,
// right behind a call instruction.
func (w *walk) plausible(ra uint64) bool {
	r := w.u.region(ra)
	if r == nil || ra == r.Start {
		return false
	}
	if w.arch != &amd64 {
		var insn [4]byte
		return ra%4 == 0 && (w.readCode(r, ra-4, insn[:]) != nil || isCallARM64(insn))
	}
	if r.image == nil {
		return w.behindCall(r, ra)
	}
	return r.calls.ask(ra, func() bool { return w.behindCall(r, ra) })
}

// behindCall reads the code before an address of an x86-64 process.
func (w *walk) behindCall(r *region, ra uint64) bool {
	const longest = 7
	var before [longest]byte
	if ra-r.Start < longest || w.readCode(r, ra-longest, before[:]) != nil {
		return r.image != nil // cannot be checked
	}
	return endsInCall(before) || r.startsGoroutine(ra, before[longest-1])
}

// memo remembers answers about code that cannot change. It is bounded, and
// safe for concurrent use.
type memo struct {
	mu    sync.RWMutex
	known map[uint64]bool
}

const maxMemo = 4096

func (m *memo) ask(addr uint64, find func() bool) bool {
	m.mu.RLock()
	answer, ok := m.known[addr]
	m.mu.RUnlock()
	if ok {
		return answer
	}
	answer = find()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) == maxMemo {
		m.known = map[uint64]bool{}
	}
	m.known[addr] = answer
	return answer
}

// startsGoroutine knows the return address that Go puts under a goroutine: one
// byte into runtime.goexit, behind a nop.
func (r *region) startsGoroutine(ra uint64, last byte) bool {
	const nop = 0x90
	if r.goTab == nil || last != nop {
		return false
	}
	f, ok := r.goTab.Function(ra - 1 - r.bias)
	return ok && f.Name == "runtime.goexit"
}

// readCode reads instructions from the image, or from memory for code that was
// made at run time.
func (w *walk) readCode(r *region, addr uint64, buf []byte) error {
	if r.image != nil {
		return r.image.ReadVaddr(addr-r.bias, buf)
	}
	b, err := w.mem.bytes(addr, len(buf))
	copy(buf, b)
	return err
}

// endsInCall says whether x86-64 code ends in one of the forms of call.
func endsInCall(b [7]byte) bool {
	const relative, group5 = 0xe8, 0xff
	if b[2] == relative {
		return true
	}
	// FF /2 with every form of operand; its length follows from the ModRM byte.
	for length := 2; length <= 7; length++ {
		at := 7 - length
		if b[at] == group5 && b[at+1]>>3&7 == 2 && indirectLength(b[at+1], b[min(at+2, 6)]) == length {
			return true
		}
	}
	return false
}

// indirectLength is the length of FF /2 without prefixes.
func indirectLength(modrm, sib byte) int {
	mod, rm := modrm>>6, modrm&7
	length := 2
	if mod != 3 && rm == 4 {
		length++
		if mod == 0 && sib&7 == 5 {
			return length + 4
		}
	}
	switch {
	case mod == 1:
		return length + 1
	case mod == 2, mod == 0 && rm == 5:
		return length + 4
	}
	return length
}
