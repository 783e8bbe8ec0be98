// Package luajit reads LuaJIT virtual machines inside another process: it finds
// them, and turns one sampled instant into Lua frames with functions, lines and
// values, in the interpreter and inside compiled traces.
//
// No offset is taken from a table of versions. The interpreter is one block of
// assembler code whose shape is fixed by LuaJIT's own sources; the offsets it
// uses are read out of its instructions in the process at hand, checked against
// the exported accessors where the image has them, and against the live objects.
// A virtual machine that fails a check is refused by name.
//
// Only x86-64 builds with 64-bit references (LJ_GC64) are read.
package luajit
