package symbol

import (
	"os"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

func TestSymbolOfOwnProcess(t *testing.T) {
	maps, err := procmem.ReadMaps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	c := NewCache(8)
	for _, m := range maps {
		if !m.Exec {
			continue
		}
		image, err := c.Open(os.Getpid(), m)
		t.Log(m.Path, image, err)
		if err == nil {
			t.Log(image.Bias(m))
		}
	}
	addr, size, ok := c.Symbol(os.Getpid(), maps, "runtime.main")
	t.Logf("%#x %d %v", addr, size, ok)
	var k Kernel
	t.Log(k.Name(k.funcs.base+5), len(k.funcs.funcs))
}
