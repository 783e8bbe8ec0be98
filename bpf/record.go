package bpf

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"
)

const (
	headerSize = int(unsafe.Sizeof(samplerHeader{}))
	stacksAt   = int(unsafe.Offsetof(samplerRecord{}.Stacks))
	furtherAt  = int(unsafe.Offsetof(samplerFurther{}.Stack))
)

// decode copies the header of a record of the ring into a Sample. The windows
// behind it are copied by Load.
func decode(raw []byte) (Sample, error) {
	h, err := headerOf(raw)
	if err != nil {
		return Sample{}, err
	}
	s := Sample{
		When: time.Duration(h.When), PID: int(h.Pid), TID: int(h.Tid), CPU: int(h.Cpu),
		Weight: time.Duration(h.Weight), CPUTime: time.Duration(h.CpuTime),
		Voluntary: h.Voluntary, Involuntary: h.Involuntary, RunDelay: time.Duration(h.RunDelay),
		Progress: h.Progress, ProgressOK: h.ProgressOk != 0,
		InKernel: h.InKernel != 0, Syscall: h.Syscall, Full: h.Full != 0, StackCut: h.StackCut != 0,
		Registers: h.Regs,
	}
	if h.CrumbLen > 0 && int(h.CrumbLen) <= len(h.Crumb) {
		s.Crumb = append([]byte(nil), h.Crumb[:h.CrumbLen]...)
	}
	if !s.Full {
		return s, nil
	}
	if len(raw) < stacksAt {
		return s, fmt.Errorf("record of the sampler: %d bytes, want at least %d with its windows", len(raw), stacksAt)
	}
	s.raw = raw
	return s, nil
}

func headerOf(raw []byte) (h samplerHeader, err error) {
	if len(raw) < headerSize {
		return h, fmt.Errorf("record of the sampler: %d bytes, want at least %d", len(raw), headerSize)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&h)), headerSize), raw)
	return h, nil
}

// The layout of a record behind its header.
var layout = struct{ kernel, luaGlobal, luaState uintptr }{
	unsafe.Offsetof(samplerRecord{}.Kernel), unsafe.Offsetof(samplerRecord{}.LuaGlobal), unsafe.Offsetof(samplerRecord{}.LuaState),
}

// Load copies the windows of a sample that Sampler.ReadHead has returned, which
// are many times larger than the rest. It must come before the sampler is read
// again. Of a sample without windows, or with copied ones, it does nothing.
func (s *Sample) Load() error {
	if s.raw == nil {
		return nil
	}
	kept := append([]byte(nil), s.raw...)
	s.raw = nil
	h, err := headerOf(kept)
	cut := func(addr uint64, at, end uintptr, n uint32) Window {
		if uintptr(n) > end-at {
			err = fmt.Errorf("record of the sampler: window of %d bytes, at most %d fit", n, end-at)
			return Window{}
		}
		return Window{addr, kept[at : at+uintptr(n) : at+uintptr(n)]}
	}
	s.LuaGlobal = cut(h.LuaGlobalAddr, layout.luaGlobal, layout.luaState, h.LuaGlobalLen)
	s.LuaState = cut(h.LuaStateAddr, layout.luaState, uintptr(stacksAt), h.LuaStateLen)
	s.LuaStack = cut(h.LuaStackAddr, uintptr(stacksAt), uintptr(len(kept)), h.LuaStackLen)
	s.Stack = cut(h.StackAddr, uintptr(stacksAt+len(s.LuaStack.Data)), uintptr(len(kept)), h.StackLen)
	if h.KernelLen > 0 {
		frames := cut(0, layout.kernel, layout.luaGlobal, uint32(h.KernelLen)).Data
		for ; len(frames) >= 8; frames = frames[8:] {
			s.KernelStack = append(s.KernelStack, binary.NativeEndian.Uint64(frames))
		}
	}
	return err
}
