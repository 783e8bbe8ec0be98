package unwind

import (
	"encoding/binary"
	"fmt"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// stackMemory reads words of the stack: from copied windows without a call,
// else from live memory in pieces.
type stackMemory struct {
	windows []procmem.Window
	under   procmem.Memory
	base    uint64 // of piece
	piece   []byte
	missing uint64 // the last address of which nothing could be read, 0: none
}

const pieceSize = 4096

func newStackMemory(mem procmem.Memory) *stackMemory {
	switch m := mem.(type) {
	case procmem.Window:
		return &stackMemory{windows: []procmem.Window{m}}
	case procmem.Overlay:
		return &stackMemory{windows: m.Windows, under: m.Under}
	}
	return &stackMemory{under: mem}
}

// word reads 8 bytes.
func (s *stackMemory) word(addr uint64) (uint64, error) {
	b, err := s.bytes(addr, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// Load reads a little-endian number, for expressions.
func (s *stackMemory) Load(addr uint64, size int) (uint64, error) {
	switch size {
	case 1, 2, 4, 8:
	default:
		return 0, fmt.Errorf("word of %d bytes", size)
	}
	b, err := s.bytes(addr, size)
	if err != nil {
		return 0, err
	}
	var v [8]byte
	copy(v[:], b)
	return binary.LittleEndian.Uint64(v[:]), nil
}

// bytes returns at most pieceSize bytes, valid until the next call.
func (s *stackMemory) bytes(addr uint64, n int) ([]byte, error) {
	for i := range s.windows {
		w := &s.windows[i]
		if addr >= w.Addr && addr-w.Addr <= uint64(len(w.Data)) && uint64(n) <= uint64(len(w.Data))-(addr-w.Addr) {
			return w.Data[addr-w.Addr:][:n], nil
		}
	}
	if s.under == nil {
		s.missing = addr
		return nil, fmt.Errorf("%#x was not copied", addr)
	}
	if addr >= s.base && addr-s.base+uint64(n) <= uint64(len(s.piece)) {
		return s.piece[addr-s.base:][:n], nil
	}
	return s.read(addr, n)
}

// read fetches a piece around the address, or only what was asked for where
// the piece crosses the end of a mapping.
func (s *stackMemory) read(addr uint64, n int) ([]byte, error) {
	const before = 64 // saved registers lie below the return address
	if cap(s.piece) < pieceSize {
		s.piece = make([]byte, pieceSize)
	}
	s.piece, s.base = s.piece[:pieceSize], addr-before
	if s.base < addr && s.under.ReadMemory(s.base, s.piece) == nil {
		return s.piece[before:][:n], nil
	}
	s.piece, s.base = s.piece[:n], addr
	if err := s.under.ReadMemory(addr, s.piece); err != nil {
		s.piece, s.missing = s.piece[:0], addr
		return nil, fmt.Errorf("stack at %#x cannot be read", addr)
	}
	return s.piece, nil
}
