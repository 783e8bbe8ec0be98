package flamegraph

import (
	"bufio"
	"io"
)

// output is a buffered writer that is asked for its error once, at Flush:
// bufio keeps the first one and writes nothing more after it.
type output struct{ *bufio.Writer }

func newOutput(w io.Writer) output { return output{bufio.NewWriterSize(w, 1<<16)} }

// text writes strings as they are.
func (o output) text(parts ...string) {
	for _, p := range parts {
		_, _ = o.WriteString(p)
	}
}

// bytes writes bytes as they are.
func (o output) bytes(b []byte) { _, _ = o.Write(b) }
