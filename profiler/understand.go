package profiler

import (
	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// Understand makes a stack of a sample of this process, with the kernel's
// frames, the native ones and those of Lua in their true order, leaf first.
// The machine stack is read from the sample: where that ends, so does the
// stack, but for the middle of a very deep one that has not changed since. Of
// Lua, what the sample holds wins over what the memory holds by now; the rest
// is read from the live process. A sample without windows (Full is false) gives
// an empty stack that says so. It never fails: what could not be had is in
// Stack.Truncated.
func (p *Process) Understand(s bpf.Sample) Result { return p.sampled(s, false) }

// Glance is Understand without the values of LuaJIT's variables. Profiles don't
// have them, and to read them takes much of the time.
func (p *Process) Glance(s bpf.Sample) Result { return p.sampled(s, true) }

func (p *Process) sampled(s bpf.Sample, places bool) Result {
	if !s.Full {
		return Result{Stack: stack.Stack{Truncated: "windows were not copied"}}
	}
	var regs stack.Registers
	for n, v := range s.Registers {
		regs.Set(n, v)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.reset()
	p.view.add(s.Stack)
	for _, w := range s.Further {
		p.view.add(w)
	}
	p.vms.places = places
	defer func() { p.vms.places = false }()
	stacks := len(p.view.windows)
	for _, w := range [...]bpf.Window{s.LuaStack, s.LuaState, s.LuaGlobal} {
		p.view.add(w)
	}
	r := p.understand(regs, newRest(p.modules, p.mem, p.view.windows[:stacks]))
	if len(s.KernelStack) > 0 {
		r.Stack.Frames = append(kernelFrames(s.KernelStack), r.Stack.Frames...)
	}
	return r
}

// Blocked makes the stack of a thread that sleeps, from its live memory and
// the two registers that /proc/PID/task/TID/syscall tells.
func (p *Process) Blocked(sp, pc uint64) Result {
	var regs stack.Registers
	regs.Set(stack.RSP, sp)
	regs.Set(stack.RIP, pc)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.reset()
	return p.understand(regs, nil)
}

// understand walks the machine stack in its windows and the rest, and the Lua
// stacks in the view. Without a rest the thread sleeps, and all is live memory.
func (p *Process) understand(regs stack.Registers, live *rest) Result {
	mem := procmem.Overlay{Under: p.mem}
	if live != nil {
		mem = procmem.Overlay{Windows: p.view.windows[:live.windows], Under: live}
	}
	frames, truncated := p.unwind(regs, mem)
	native, inner := p.native(frames)
	lua := p.vms.walk(inner, p.view)
	p.vms.missed(native, lua.segments)
	if at, lost := p.lost(frames, native, truncated); lost && len(lua.segments) > 0 {
		if more, why, ok := p.resume(frames[:at+1], lua, mem); ok {
			frames, truncated = more, why
			native, _ = p.native(frames)
			native[at].vm = true
		}
	}
	if live != nil && live.moved() {
		frames, truncated = live.cut(frames)
		native, _ = p.native(frames)
	}
	puc, why := p.puc.walk(p, frames, native, p.view)
	lua.segments = append(lua.segments, puc...)
	if lua.truncated == "" {
		lua.truncated = why
	}
	if truncated == "" && lua.truncated != "" {
		truncated = "Lua " + lua.truncated
	}
	return Result{
		Stack: merge(native, lua.segments, lua.work(), truncated),
		State: lua.state, Thread: lua.thread, Request: lua.request,
		lower: p.loop.lower(frames, p.view),
	}
}

// unwind walks the machine stack, once more if it ended at code that the
// mappings did not show.
func (p *Process) unwind(regs stack.Registers, mem procmem.Memory) ([]unwind.Frame, string) {
	frames, truncated := p.modules.unwinder.Unwind(regs, mem, p.vms.code)
	if truncated == "" || len(frames) == 0 || p.modules.isCode(frames[len(frames)-1].Lookup()) || !p.modules.refresh() {
		return frames, truncated
	}
	return p.modules.unwinder.Unwind(regs, mem, p.vms.code)
}

// native names the frames; inner is the innermost one that runs Lua.
func (p *Process) native(frames []unwind.Frame) (out []nativeFrame, inner *unwind.Frame) {
	out = make([]nativeFrame, len(frames))
	for i := range frames {
		at := frames[i].Lookup()
		out[i].cfa, out[i].leftOut = frames[i].CFA, frames[i].LeftOut > 0
		if p.vms.runsLua(at) {
			out[i].vm, out[i].Address = true, at
			if inner == nil {
				inner = &frames[i]
			}
			continue
		}
		out[i].Frame = p.modules.frame(at)
	}
	return out, inner
}

// kernelFrames names the kernel's part of a stack.
func kernelFrames(addrs []uint64) []stack.Frame {
	out := make([]stack.Frame, len(addrs))
	for i, a := range addrs {
		if i > 0 {
			a-- // a return address: the call is before it
		}
		out[i] = stack.Frame{Kind: stack.Kernel, Function: kernelNames.Name(a), Address: a}
	}
	return out
}
