package profiler

import (
	"encoding/binary"
	"strings"

	puc "github.com/spinguard/spinguard/profiler/lua"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// pucLua reads the stacks of PUC Lua, which HAProxy has, in a process without
// LuaJIT. It looks only at samples that were taken inside of it.
type pucLua struct {
	looked bool
	vm     *puc.VM         // nil: none
	image  procmem.Mapping // one of the mappings of Lua's image
}

// Lua's interpreter is one function, which strippers leave without a name. It
// is by far the largest of the library.
const (
	interpreterName = "luaV_execute"
	interpreterSize = 6000
)

const maxWords = 64 << 10 / 8 // of the machine stack

// look finds Lua by the text that every PUC Lua exports.
func (l *pucLua) look(p *Process) {
	if l.looked || len(p.vms.list) > 0 {
		return
	}
	l.looked = true
	addr, size, ok := p.cache.Symbol(p.mem.PID, p.modules.maps, "lua_ident")
	if !ok || size == 0 || size > 512 {
		return
	}
	text := make([]byte, size)
	if p.mem.ReadMemory(addr, text) != nil {
		return
	}
	l.image, _ = p.modules.maps.Find(addr)
	l.vm = puc.New(string(text))
}

// walk returns the Lua frames of one instant, and marks the machine frames in
// whose places they belong.
func (l *pucLua) walk(p *Process, frames []unwind.Frame, native []nativeFrame, mem procmem.Memory) (segments []segment, truncated string) {
	if l.look(p); l.vm == nil || len(frames) == 0 {
		return nil, ""
	}
	places := l.places(p, frames, native)
	if len(places) == 0 {
		return nil, ""
	}
	words := machineWords(frames, mem)
	w := l.vm.Walk(mem, onHeap(p.modules.maps, words))
	if len(w.Runs) == 0 && p.modules.refresh() { // the heap has grown since
		w = l.vm.Walk(mem, onHeap(p.modules.maps, words))
	}
	without := withoutFrame(w.Runs, len(places))
	for i, run := range w.Runs {
		switch {
		case len(places) > 0 && !without[i]:
			at := &native[places[0]]
			at.vm = true
			segments = append(segments, segment{at.cfa, run.Frames})
			places = places[1:]
		case len(segments) > 0:
			last := &segments[len(segments)-1]
			last.frames = append(last.frames, run.Frames...)
		}
	}
	return segments, w.Truncated
}

// onHeap returns those of the words that may point to a state.
func onHeap(maps procmem.Maps, words []uint64) (list []uint64) {
	for _, v := range words {
		if m, ok := maps.Find(v); ok && m.Inode == 0 && m.Write && m.Path != "[stack]" {
			list = append(list, v)
		}
	}
	return list
}

// withoutFrame tells which runs have no machine frame, given how many have one.
// Those are functions that a coroutine returns to which has yielded since they
// were called, so the outermost ones.
func withoutFrame(runs []puc.Run, places int) map[int]bool {
	without := map[int]bool{}
	for i := len(runs) - 1; i >= 0 && len(runs)-len(without) > places; i-- {
		if runs[i].Apart {
			without[i] = true
		}
	}
	return without
}

// places lists the machine frames of the interpreter, leaf first. Where it
// can't be told from other functions of Lua, the outermost of them stands for
// all.
func (l *pucLua) places(p *Process, frames []unwind.Frame, native []nativeFrame) (list []int) {
	outermost := -1
	for i := range frames {
		at, ok := p.modules.unwinder.Locate(frames[i].Lookup())
		if !ok || at.Image == nil || at.Mapping.Inode != l.image.Inode || at.Mapping.Path != l.image.Path {
			continue
		}
		if native[i].Function == interpreterName {
			list = append(list, i)
			continue
		}
		if !strings.Contains(at.Image.Module(), "lua") {
			continue // a program that has Lua built in: it has large functions of its own
		}
		outermost = i
		if start, end, ok := at.Image.Function(at.Vaddr); ok && end-start >= interpreterSize {
			list = append(list, i)
		}
	}
	if len(list) == 0 && outermost >= 0 {
		list = append(list, outermost)
	}
	return list
}

// machineWords lists the registers, and the words of the machine stack up to
// where the walk of it ended.
func machineWords(frames []unwind.Frame, mem procmem.Memory) []uint64 {
	regs := &frames[0].Registers
	var words []uint64
	for n := range stack.RIP + 1 {
		if v, ok := regs.Get(n); ok {
			words = append(words, v)
		}
	}
	const piece = 512
	end := uint64(0)
	for i := range frames {
		end = max(end, frames[i].CFA)
	}
	for at := regs.SP() &^ 7; at < end && len(words) < maxWords; at += piece {
		var b [piece]byte
		if mem.ReadMemory(at, b[:min(piece, (end-at)&^7)]) != nil {
			break
		}
		for i := 0; i < len(b) && at+uint64(i) < end; i += 8 {
			words = append(words, binary.LittleEndian.Uint64(b[i:]))
		}
	}
	return words
}
