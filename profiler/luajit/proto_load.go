package luajit

import (
	"bytes"
	"encoding/binary"
)

// loadProto reads a prototype and checks that its parts lie inside of it.
func (vm *VM) loadProto(r reader, addr uint64) *proto {
	head := vm.protoHead(r, addr)
	if head == nil {
		return nil
	}
	return vm.protos.get(addr, vm.protoKey(head), func() *proto { return vm.parseProto(r, addr, head) })
}

// protoHead reads the header of a prototype, nil if there is none.
func (vm *VM) protoHead(r reader, addr uint64) []byte {
	if addr == 0 || addr&7 != 0 || addr > addrMask {
		return nil
	}
	head := r.bytes(addr, int(vm.protoSize))
	if head == nil || head[objType] != tagProto {
		return nil
	}
	return head
}

// protoKey holds what can't change while the prototype lives. Its address
// alone would name a new function by an old one's name after a collection.
func (vm *VM) protoKey(head []byte) [40]byte {
	var key [40]byte
	copy(key[0:4], head[protoSizeBC:])
	copy(key[4:8], head[vm.sizept():])
	copy(key[8:16], head[protoK:])
	copy(key[16:24], head[vm.chunkname():])
	copy(key[24:32], head[vm.firstline():]) // and numline
	copy(key[32:40], head[vm.lineinfo():])
	return key
}

func (vm *VM) parseProto(r reader, addr uint64, head []byte) *proto {
	le := binary.LittleEndian
	size, count := uint64(le.Uint32(head[vm.sizept():])), uint64(le.Uint32(head[protoSizeBC:]))
	if size > maxProto || count == 0 || uint64(vm.protoSize)+4*count > size {
		return nil
	}
	raw := r.bytes(addr, int(size))
	k := le.Uint64(head[protoK:])
	if raw == nil || k < addr || k > addr+size {
		return nil
	}
	p := &proto{
		addr: addr, bcAddr: addr + uint64(vm.protoSize), raw: raw, k: int(k - addr),
		params:    int(head[protoParams]),
		firstline: int(int32(le.Uint32(head[vm.firstline():]))),
		numline:   int(int32(le.Uint32(head[vm.numline():]))),
		nkc:       int(min(le.Uint32(head[vm.sizekgc():]), 1<<20)),
	}
	var ok bool
	if p.chunk, _, ok = r.str(le.Uint64(head[vm.chunkname():]), maxString); !ok {
		return nil
	}
	p.bc = make([]ins, count)
	for i := range p.bc {
		p.bc[i] = ins(le.Uint32(raw[int(vm.protoSize)+4*i:]))
	}
	if p.bc[0].op() <= opJMP {
		return nil // every function begins with a function header
	}
	inside := func(off int64) []byte {
		if at := le.Uint64(head[off:]); at >= addr+uint64(vm.protoSize) && at < addr+size {
			return raw[at-addr:]
		}
		return nil
	}
	p.parseDebug(inside(vm.lineinfo()), inside(vm.uvinfo()), inside(vm.varinfo()), int(head[vm.sizeuv()]))
	return p
}

func (p *proto) parseDebug(lines, upvalues, vars []byte, nup int) {
	if lines != nil {
		switch {
		case p.numline < 1<<8:
			p.width = 1
		case p.numline < 1<<16:
			p.width = 2
		default:
			p.width = 4
		}
		p.lines = lines[:min(len(lines), (len(p.bc)-1)*p.width)]
	}
	for ; nup > 0 && upvalues != nil; nup-- {
		name, rest, ok := bytes.Cut(upvalues, []byte{0})
		if !ok {
			break
		}
		p.upvalues = append(p.upvalues, printable(string(name), 64))
		upvalues = rest
	}
	p.vars = parseVars(vars)
}

// hidden names the variables of loops that have no name in the source.
var hidden = [...]string{
	1: "(for index)", "(for limit)", "(for step)", "(for generator)", "(for state)", "(for control)",
}

// parseVars reads the packed list of local variables: a name, the distance
// of its start from the last one's, and its length in instructions.
func parseVars(b []byte) []variable {
	var vars []variable
	last := 0
	for len(b) > 0 && b[0] != 0 && len(vars) < maxVars {
		var v variable
		if int(b[0]) < len(hidden) {
			v.name = hidden[b[0]]
			b = b[1:]
		} else {
			name, rest, ok := bytes.Cut(b, []byte{0})
			if !ok {
				return vars
			}
			v.name, b = printable(string(name), 64), rest
		}
		start, n := binary.Uvarint(b)
		if n <= 0 {
			return vars
		}
		length, m := binary.Uvarint(b[n:])
		if m <= 0 || start > maxProto || length > maxProto || last > maxProto {
			return vars
		}
		last += int(start)
		v.start, v.end = last, last+int(length)
		vars, b = append(vars, v), b[n+m:]
	}
	return vars
}

// protoOf finds the prototype whose bytecode holds an address, by looking for
// its header below.
func (vm *VM) protoOf(r reader, pc uint64) *proto {
	const piece, most = 512, 64 << 10
	if pc&3 != 0 || pc < most || pc > addrMask {
		return nil
	}
	end := pc &^ 7
	for start := end - piece; end-start <= most; start -= piece {
		b := r.bytes(start, piece)
		if b == nil {
			return nil
		}
		for off := piece - 8; off >= 0; off -= 8 {
			addr := start + uint64(off)
			if off+objType < piece && b[off+objType] != tagProto {
				continue
			}
			if p := vm.loadProto(r, addr); p != nil && p.pos(pc) >= 0 {
				return p
			}
		}
	}
	return nil
}
