package unwind

import (
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

// window copies the stack of a stopped target, as a sample does.
func (x *target) window(regs stack.Registers) procmem.Window {
	x.t.Helper()
	maps, err := x.maps()
	if err != nil {
		x.t.Fatal(err)
	}
	m, ok := maps.Find(regs.SP())
	if !ok {
		x.t.Fatalf("no stack at %#x", regs.SP())
	}
	w := procmem.Window{Addr: regs.SP(), Data: make([]byte, min(m.End-regs.SP(), 16<<10))}
	if err := x.process.ReadMemory(w.Addr, w.Data); err != nil {
		x.t.Fatal(err)
	}
	return w
}

func benchmark(b *testing.B, x *target, mem procmem.Memory, regs stack.Registers) {
	frames, truncated := x.unwind.Unwind(regs, mem, nil)
	if truncated != "" {
		b.Fatal(truncated)
	}
	b.ReportAllocs()
	for b.Loop() {
		x.unwind.Unwind(regs, mem, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(frames)), "ns/frame")
}

func BenchmarkWindow(b *testing.B) {
	x := start(b, build(b, "-O2"))
	x.reach("order", "")
	regs := x.registers()
	benchmark(b, x, procmem.Overlay{Windows: []procmem.Window{x.window(regs)}, Under: x.process}, regs)
}

func BenchmarkLiveMemory(b *testing.B) {
	x := start(b, build(b, "-O2"))
	x.reach("order", "")
	benchmark(b, x, x.process, x.registers())
}

func BenchmarkInterpreter(b *testing.B) {
	x := start(b, luaHost(b), "jit.off()"+luaScript)
	for range 1000 {
		x.step()
	}
	regs := x.registers()
	benchmark(b, x, procmem.Overlay{Windows: []procmem.Window{x.window(regs)}, Under: x.process}, regs)
}

func BenchmarkGo(b *testing.B) {
	x := start(b, buildGo(b))
	x.reach("main.middle", "")
	benchmark(b, x, x.process, x.registers())
}
