package luajit

import (
	"encoding/binary"
	"strings"
	"sync"
)

// proto is a function prototype: its bytecode and debug information. Loaded
// prototypes do not change and are shared.
type proto struct {
	addr      uint64
	bcAddr    uint64
	params    int
	firstline int
	numline   int
	chunk     string // as LuaJIT has it, with its '@' or '='
	bc        []ins
	lines     []byte // delta from firstline, for each instruction but the first
	width     int    // bytes of each delta
	upvalues  []string
	vars      []variable

	raw []byte // the whole object
	k   int    // offset of the constants' middle in raw
	nkc int    // collectable constants below it

	findLoops sync.Once
	loops     []loop
}

// variable is a local variable, visible from one instruction up to another.
type variable struct {
	name       string
	start, end int
}

const (
	maxProto = 8 << 20
	maxVars  = 1 << 16
)

// pos returns the index of the instruction at an address, or -1.
func (p *proto) pos(pc uint64) int {
	if pc < p.bcAddr || pc&3 != 0 || pc-p.bcAddr >= uint64(4*len(p.bc)) {
		return -1
	}
	return int(pc-p.bcAddr) / 4
}

// line returns the source line of an instruction, 0 without debug information.
// The header of a function counts as its first instruction: the line of its
// definition is no place to be.
func (p *proto) line(pos int) int {
	if pos == 0 && len(p.bc) > 1 {
		pos = 1
	}
	at := (pos - 1) * p.width
	if pos < 0 || p.width == 0 || at+p.width > len(p.lines) {
		return 0
	}
	b := p.lines[at:]
	switch p.width {
	case 1:
		return p.firstline + int(b[0])
	case 2:
		return p.firstline + int(binary.LittleEndian.Uint16(b))
	}
	return p.firstline + int(binary.LittleEndian.Uint32(b))
}

// visible lists the local variables at an instruction; their slots count up
// from 0.
func (p *proto) visible(pos int) []variable {
	var vs []variable
	for _, v := range p.vars {
		if v.start > pos {
			break
		}
		if pos < v.end {
			vs = append(vs, v)
		}
	}
	return vs
}

// varName names a slot at an instruction, or returns "".
func (p *proto) varName(pos, slot int) string {
	if vs := p.visible(pos); slot >= 0 && slot < len(vs) {
		return vs[slot].name
	}
	return ""
}

// constant returns the address of a collectable constant, 0 if there is none.
func (p *proto) constant(d int) uint64 {
	at := p.k - 8*(d+1)
	if d < 0 || d >= p.nkc || at < 0 || at+8 > len(p.raw) {
		return 0
	}
	return binary.LittleEndian.Uint64(p.raw[at:])
}

// file returns the chunk's name as a file name: a path, a given name, or the
// first line of source text in the form of LuaJIT's messages.
func (p *proto) file() string {
	switch {
	case p.firstline == -1:
		return "[builtin:" + p.chunk + "]"
	case strings.HasPrefix(p.chunk, "@"), strings.HasPrefix(p.chunk, "="):
		return printable(p.chunk[1:], maxString)
	}
	const most = 60 - 15
	cut := strings.IndexFunc(p.chunk, func(r rune) bool { return r < ' ' })
	if cut < 0 && len(p.chunk) <= most {
		return `[string "` + printable(p.chunk, most) + `"]`
	}
	if cut < 0 || cut > most {
		cut = most
	}
	return `[string "` + printable(p.chunk[:cut], most) + `..."]`
}

// isMain says that the prototype is a whole chunk, not a function in it.
func (p *proto) isMain() bool { return p.firstline == 0 }
