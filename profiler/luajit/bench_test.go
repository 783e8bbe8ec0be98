package luajit

import (
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// BenchmarkWalk walks a live process, sample after sample.
func BenchmarkWalk(b *testing.B) {
	for _, mode := range []string{"on", "off"} {
		b.Run("jit-"+mode, func(b *testing.B) {
			p, _ := start(b, engines(b)[0], "gcd.lua", mode)
			vm := findVMs(b, p)[0]
			pause(10)
			mem, regs := sample(b, vm, p)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := vm.Walk(mem, regs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFind looks for the VM of a live process.
func BenchmarkFind(b *testing.B) {
	p, _ := start(b, engines(b)[0], "gcd.lua", "on")
	maps, err := procmem.ReadMaps(p.PID)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Find(p, maps, nil); err != nil {
			b.Fatal(err)
		}
	}
}
