package unwind

import (
	"sync"
	"testing"

	"github.com/spinguard/spinguard/profiler/symbol"
)

// TestConcurrent shares an unwinder between goroutines while mappings change.
func TestConcurrent(t *testing.T) {
	x := start(t, build(t, "-O2"))
	x.reach("outer", "order")
	regs := x.registers()
	window := x.window(regs)
	maps, err := x.maps()
	if err != nil {
		t.Fatal(err)
	}
	fresh := New(symbol.NewCache(2), x.pid, maps)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				if _, truncated := fresh.Unwind(regs, window, nil); truncated != "" {
					t.Error(truncated)
					return
				}
				fresh.SetMaps(maps)
			}
		})
	}
	group.Wait()
}
