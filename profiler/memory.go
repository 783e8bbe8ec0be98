package profiler

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/unwind"
)

// rest is the live memory that a walk of the machine stack may read besides
// the copied windows: code, which stays as it is, and the middle of a very deep
// stack, if its two ends were copied.
type rest struct {
	modules *modules
	under   procmem.Memory
	windows int            // how many were copied
	from    procmem.Window // the copied window below the middle
	end     uint64         // of the middle, 0: there is none
	used    bool           // the middle was read
}

var errNotCopied = errors.New("it was not copied")

// newRest takes the windows of one stack, from the leaf on.
func newRest(m *modules, under procmem.Memory, windows []procmem.Window) *rest {
	r := &rest{modules: m, under: under, windows: len(windows)}
	if n := len(windows); n > 1 && !m.switches && windows[n-1].Addr > windows[n-2].Addr {
		r.from, r.end = windows[n-2], windows[n-1].Addr
	}
	return r
}

// middle returns the first address of the middle.
func (r *rest) middle() uint64 { return r.from.Addr + uint64(len(r.from.Data)) }

// ReadMemory implements procmem.Memory.
func (r *rest) ReadMemory(addr uint64, buf []byte) error {
	last := addr + uint64(len(buf)) - 1
	switch {
	case len(buf) == 0:
		return nil
	case r.modules.isCode(addr) && r.modules.isCode(last):
	case r.end != 0 && addr >= r.middle() && last < r.end && last >= addr:
		r.used = true
	default:
		return errNotCopied
	}
	return r.under.ReadMemory(addr, buf)
}

// moved says that the middle was read, and that the thread may have returned
// to it meanwhile: then it has written to the window below it.
func (r *rest) moved() bool {
	if !r.used {
		return false
	}
	const enough = 16 << 10
	was := r.from.Data[max(0, len(r.from.Data)-enough):]
	is := make([]byte, len(was))
	return r.under.ReadMemory(r.middle()-uint64(len(was)), is) != nil || !bytes.Equal(was, is)
}

// cut leaves the frames below the middle.
func (r *rest) cut(frames []unwind.Frame) ([]unwind.Frame, string) {
	for i := range frames {
		if frames[i].CFA >= r.middle() {
			return frames[:i+1], fmt.Sprintf("frame %d: cut window at %#x", i, r.middle())
		}
	}
	return frames, ""
}
