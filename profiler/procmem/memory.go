// Package procmem reads the memory and the mappings of another process. It
// never stops, signals or writes to that process.
package procmem

import (
	"encoding/binary"
	"fmt"
)

// Memory reads the address space of one process, or a recorded part of one.
type Memory interface {
	// ReadMemory fills buf from the address. It either fills all of buf or
	// returns an error; there are no short reads.
	ReadMemory(addr uint64, buf []byte) error
}

// Uint64 reads a little-endian 64-bit word.
func Uint64(m Memory, addr uint64) (uint64, error) {
	var b [8]byte
	if err := m.ReadMemory(addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// Uint32 reads a little-endian 32-bit word.
func Uint32(m Memory, addr uint64) (uint32, error) {
	var b [4]byte
	if err := m.ReadMemory(addr, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}

// Window is a copy of a piece of memory, such as the stack of a sample.
type Window struct {
	Addr uint64
	Data []byte
}

// ReadMemory implements Memory for addresses inside the window.
func (w Window) ReadMemory(addr uint64, buf []byte) error {
	if !w.holds(addr, len(buf)) {
		return fmt.Errorf("%d bytes at %#x: outside of the copied window", len(buf), addr)
	}
	copy(buf, w.Data[addr-w.Addr:])
	return nil
}

func (w Window) holds(addr uint64, n int) bool {
	return addr >= w.Addr && addr-w.Addr <= uint64(len(w.Data)) && uint64(n) <= uint64(len(w.Data))-(addr-w.Addr)
}

// Overlay reads from the first window that holds an address, else from Under.
// So what was copied at the instant of a sample wins over what the memory
// holds now. Under may be nil.
type Overlay struct {
	Windows []Window
	Under   Memory
}

// ReadMemory implements Memory.
func (o Overlay) ReadMemory(addr uint64, buf []byte) error {
	for _, w := range o.Windows {
		if w.holds(addr, len(buf)) {
			return w.ReadMemory(addr, buf)
		}
	}
	if o.Under == nil {
		return fmt.Errorf("%d bytes at %#x: not copied", len(buf), addr)
	}
	return o.Under.ReadMemory(addr, buf)
}
