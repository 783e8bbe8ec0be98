package luajit

import "encoding/binary"

// Tags of values: the inverse of the upper 17 bits. Everything above tagInt is
// a double. From tagStr to tagUdata the tag is also the type byte of the object.
const (
	tagNil = iota
	tagFalse
	tagTrue
	tagLightud
	tagStr
	tagUpval
	tagThread
	tagProto
	tagFunc
	tagTrace
	tagCdata
	tagTab
	tagUdata
	tagInt
)

const addrMask = 1<<47 - 1

// tv is one tagged value, the content of a Lua stack slot.
type tv uint64

func (v tv) tag() int      { return int(0x1ffff - uint64(v)>>47) }
func (v tv) addr() uint64  { return uint64(v) & addrMask }
func (v tv) isFunc() bool  { return v.tag() == tagFunc }
func (v tv) isTable() bool { return v.tag() == tagTab }

func tagged(tag int, addr uint64) tv { return tv(uint64(0x1ffff-tag)<<47 | addr) }

// Offsets that are the same in every object: the collector's header, and the
// fields that LuaJIT asserts to lie at equal places.
const (
	objType   = 9
	funcFFID  = 0x0a
	funcNUpv  = 0x0b
	objEnv    = 0x10
	strData   = 24
	uvValue   = 0x20
	tabArray  = 0x10
	tabMeta   = 0x20
	tabNode   = 0x28
	tabASize  = 0x30
	tabHMask  = 0x34
	nodeSize  = 24
	ffLua     = 0
	ffC       = 1
	maxString = 1 << 10
)

// is says whether an object of that type lies at the address.
func (r reader) is(addr uint64, tag int) bool {
	return addr != 0 && addr&7 == 0 && addr <= addrMask && r.u8(addr+objType) == uint8(tag)
}

// str reads a string object, at most limit bytes of it, and its whole length.
func (r reader) str(addr uint64, limit int) (text string, length int, ok bool) {
	if !r.is(addr, tagStr) {
		return "", 0, false
	}
	n := int(r.u32(addr + r.strLen))
	if n == 0 {
		return "", 0, true
	}
	b := r.bytes(addr+strData, min(n, limit))
	return string(b), n, b != nil
}

// table is the header of a table object.
type table struct {
	array, meta, node uint64
	asize, hmask      uint32
}

func (r reader) table(addr uint64) (table, bool) {
	if !r.is(addr, tagTab) {
		return table{}, false
	}
	b := r.bytes(addr, 0x40)
	if b == nil {
		return table{}, false
	}
	le := binary.LittleEndian
	t := table{
		array: le.Uint64(b[tabArray:]), meta: le.Uint64(b[tabMeta:]), node: le.Uint64(b[tabNode:]),
		asize: le.Uint32(b[tabASize:]), hmask: le.Uint32(b[tabHMask:]),
	}
	if t.hmask&(t.hmask+1) != 0 {
		return table{}, false
	}
	return t, true
}

// nodes calls f for the entries of the table's hash part, at most limit.
func (r reader) nodes(t table, limit int, f func(key, val tv) bool) {
	n := min(int(t.hmask)+1, limit)
	const batch = 128
	for i := 0; i < n; i += batch {
		m := min(batch, n-i)
		b := r.bytes(t.node+uint64(i*nodeSize), m*nodeSize)
		if b == nil {
			return
		}
		for ; m > 0; m-- {
			val, key := tv(binary.LittleEndian.Uint64(b)), tv(binary.LittleEndian.Uint64(b[8:]))
			if val.tag() != tagNil && !f(key, val) {
				return
			}
			b = b[nodeSize:]
		}
	}
}

// field looks a string key up in the table's own hash part.
func (r reader) field(tab uint64, key string) (tv, bool) {
	t, ok := r.table(tab)
	if !ok {
		return 0, false
	}
	var found tv
	ok = false
	r.nodes(t, maxFields, func(k, v tv) bool {
		if k.tag() != tagStr {
			return true
		}
		if text, n, good := r.str(k.addr(), len(key)+1); good && n == len(key) && text == key {
			found, ok = v, true
		}
		return !ok
	})
	return found, ok
}

// maxFields bounds how many entries of one table are looked at.
const maxFields = 4096
