package lua

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
)

// proto is a function's code and debug information.
type proto struct {
	raw    []byte // the structure itself: another one may come to lie in its place
	code   uint64
	size   int // instructions
	params int
	first  int // line where the function begins; 0: main chunk
	file   string
}

const (
	maxCode   = 1 << 20
	maxProtos = 4096
	maxSource = 256
)

// proto reads a function, or returns nil if there is none.
func (vm *VM) proto(r *reader, addr uint64) *proto {
	if !object(addr) {
		return nil
	}
	raw := r.block(addr, vm.protoSize)
	if raw == nil || raw[objectMark] != vm.protoType {
		return nil
	}
	known := vm.protos[addr]
	if known != nil && sameProto(known.raw, raw) {
		return known
	}
	p := &proto{raw: raw, code: u64(raw, vm.code), size: i32(raw, vm.sizeCode), params: int(raw[10]), first: i32(raw, vm.firstLine)}
	if !user(p.code) || p.code%4 != 0 || p.size < 1 || p.size > maxCode || p.first < 0 {
		return nil
	}
	p.file = chunk(r.text(u64(raw, vm.source), maxSource))
	if len(vm.protos) >= maxProtos {
		clear(vm.protos)
	}
	vm.protos[addr] = p
	return p
}

// sameProto compares all but the links and marks of the garbage collector.
func sameProto(a, b []byte) bool { return bytes.Equal(a[10:96], b[10:96]) }

// chunk is the short name of a source, as Lua's messages have it, but of a
// file without its folder.
func chunk(source string, _ int, ok bool) string {
	switch {
	case !ok || source == "":
		return "?"
	case source[0] == '@':
		return path.Base(source[1:])
	case source[0] == '=':
		return source[1:]
	}
	line, _, _ := strings.Cut(source, "\n")
	return fmt.Sprintf("[string %.40q]", line)
}

// index returns the instruction that runs, given the address of the next one;
// -1 if it lies elsewhere.
func (p *proto) index(saved uint64) int {
	if saved <= p.code || (saved-p.code)%4 != 0 || (saved-p.code)/4 > uint64(p.size) {
		return -1
	}
	return int((saved-p.code)/4) - 1
}

// line returns the line of an instruction, 0 if the code is stripped.
func (vm *VM) line(r *reader, p *proto, pc int) int {
	lines, n := u64(p.raw, vm.lines), i32(p.raw, vm.sizeLines)
	if pc >= n || !user(lines) {
		return 0
	}
	if vm.sizeAbs == 0 {
		return max(0, i32(r.block(lines+4*uint64(pc), 4), 0))
	}
	return max(0, vm.relativeLine(r, p, lines, pc))
}

// noLine marks an instruction whose line is told in full elsewhere.
const noLine = -0x80

// relativeLine adds up what Lua 5.4 keeps: differences in a byte each, and now
// and then a whole line.
func (vm *VM) relativeLine(r *reader, p *proto, lines uint64, pc int) int {
	at, line := -1, p.first
	if n := i32(p.raw, vm.sizeAbs); n > 0 && n <= maxCode {
		list := r.block(u64(p.raw, vm.abs), 8*n)
		for ; len(list) >= 8 && i32(list, 0) <= pc; list = list[8:] {
			at, line = i32(list, 0), i32(list, 4)
		}
	}
	if at < -1 || at >= pc {
		return line
	}
	steps := r.block(lines+uint64(at+1), pc-at)
	if steps == nil {
		return 0
	}
	for _, d := range steps {
		if int8(d) == noLine {
			return 0 // should have been found in full
		}
		line += int(int8(d))
	}
	return line
}

// instruction reads one instruction.
func (p *proto) instruction(r *reader, pc int) (uint32, bool) {
	if pc < 0 || pc >= p.size {
		return 0, false
	}
	b := r.block(p.code+4*uint64(pc), 4)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}
