package profiler

import (
	"time"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// vms finds and walks the Lua VMs of one process.
type vms struct {
	mem     procmem.Memory
	cache   *symbol.Cache
	modules *modules
	list    []int
	tried   int
	next    time.Time
}

// luaStack is what the VM says of one instant.
type luaStack struct {
	segments        [][]stack.Frame
	state, work     string
	thread, request uint64
}

func (v *vms) look() {}

func (v *vms) watch() bpf.LuaWatch { return bpf.LuaWatch{} }

func (v *vms) code(pc uint64) (int, bool) { return 0, false }

func (v *vms) runsLua(pc uint64) bool { return false }

func (v *vms) walk(regs stack.Registers, frames []unwind.Frame, mem procmem.Memory) luaStack {
	return luaStack{}
}
