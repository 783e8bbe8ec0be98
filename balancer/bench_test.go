package balancer

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkPickers prints the table of lua/t/bench.lua. Set
// LUA_RESTY_BALANCER to a built checkout to see it in the same run.
func BenchmarkPickers(b *testing.B) {
	for range min(b.N, 1) {
		for line := range strings.Lines(specOutput(b, "bench", "", 1)) {
			if text, ok := strings.CutPrefix(line, "bench "); ok {
				fmt.Print(text)
			}
		}
	}
}
