package luajit

import (
	"fmt"
	"path"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

// text prints a walk for messages and golden files.
func text(w Walk, regs *stack.Registers) string {
	var b strings.Builder
	fmt.Fprintf(&b, "state %s, trace %d", w.State, w.Trace)
	if regs != nil {
		fmt.Fprintf(&b, ", pc %#x, code %+d", regs.PC(), int64(regs.PC())-int64(debugLo))
	}
	if w.Truncated != "" {
		fmt.Fprintf(&b, ", truncated: %s", w.Truncated)
	}
	for _, segment := range w.Segments {
		b.WriteString("\n  segment")
		for _, f := range segment {
			fmt.Fprintf(&b, "\n    %-8s%s", f.Kind, f.Function)
			if f.File != "" {
				fmt.Fprintf(&b, " %s:%d", path.Base(f.File), f.Line)
			}
			for _, v := range f.Values {
				fmt.Fprintf(&b, " %s=%s", v.Name, v.Text)
			}
		}
	}
	return b.String()
}

var debugLo uint64 // start of the interpreter, for messages
