// Package lua reads call stacks of PUC Lua 5.3 and 5.4, as HAProxy has it,
// from the memory of a process. LuaJIT is another machine: see
// profiler/luajit.
//
// Offsets come from the published structures of the two versions, which have
// not changed since 5.3.0 and 5.4.0 in what is read here. They are not
// believed: a state counts only if its global state leads back to a main
// thread that leads to it, and to the very string that Lua allocates first;
// and on the way to a line everything has to have its type's mark.
package lua

import "strings"

// Types of objects that both versions share.
const (
	typeString     = 4 // short; long with variant 1
	typeLongString = 20
	typeLuaClosure = 6
	typeThread     = 8
	collectable    = 64
	isLuaClosure   = typeLuaClosure | collectable
)

// layout is where the fields lie that are read, in bytes.
type layout struct {
	version string

	// lua_State
	status, top, global, ci, stackLast, stack int
	baseCI                                    int
	// CallInfo
	ciSize, ciBase, ciSaved, ciStatus int
	ciIsC                             bool // whether the bit says C, or Lua
	ciKind, ciFresh, ciTail           uint16
	// Proto
	protoType                                byte
	protoSize                                int
	sizeCode, sizeLines, sizeLocals, sizeUps int
	sizeAbs                                  int // 0: lines are not relative
	sizeK, firstLine                         int
	k, code, lines, abs, locals, ups, source int
	upSize                                   int // of an upvalue's description
	// variants of values
	integer, float, falseTag, trueTag byte
	instructions                      *instructions
}

var layout53 = &layout{
	version: "5.3",
	status:  12, top: 16, global: 24, ci: 32, stackLast: 48, stack: 56, baseCI: 96,
	ciSize: 72, ciBase: 32, ciSaved: 40, ciStatus: 66, ciKind: 1 << 1, ciFresh: 1 << 3, ciTail: 1 << 5,
	protoType: 9, protoSize: 120,
	sizeUps: 16, sizeK: 20, sizeCode: 24, sizeLines: 28, sizeLocals: 36, firstLine: 40,
	k: 48, code: 56, lines: 72, locals: 80, ups: 88, source: 104, upSize: 16,
	float: 3, integer: 19, falseTag: 1, trueTag: 1,
	instructions: &instructions53,
}

var layout54 = &layout{
	version: "5.4",
	status:  10, top: 16, global: 24, ci: 32, stackLast: 40, stack: 48, baseCI: 96,
	ciSize: 64, ciSaved: 32, ciStatus: 62, ciIsC: true, ciKind: 1 << 1, ciFresh: 1 << 2, ciTail: 1 << 5,
	protoType: 10, protoSize: 128,
	sizeUps: 16, sizeK: 20, sizeCode: 24, sizeLines: 28, sizeLocals: 36, sizeAbs: 40, firstLine: 44,
	k: 56, code: 64, ups: 80, lines: 88, abs: 96, locals: 104, source: 112, upSize: 16,
	integer: 3, float: 19, falseTag: 1, trueTag: 17,
	instructions: &instructions54,
}

// layoutOf chooses by what lua_ident says: "$LuaVersion: Lua 5.3.6 ...".
func layoutOf(ident string) *layout {
	switch {
	case strings.HasPrefix(ident, "$LuaVersion: Lua 5.3."):
		return layout53
	case strings.HasPrefix(ident, "$LuaVersion: Lua 5.4."):
		return layout54
	}
	return nil
}
