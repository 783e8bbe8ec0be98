package proxy

import (
	"bytes"
	"os"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// births tells, at the price of one small read, whether processes may have
// started or ended since it was asked last.
type births struct {
	file   *os.File // nil: it can't be told
	fd     int      // its descriptor
	before []byte
}

func openBirths() births {
	file, err := os.Open("/proc/loadavg")
	if err != nil {
		return births{}
	}
	return birthsOf(file)
}

func birthsOf(file *os.File) births { return births{file: file, fd: int(file.Fd())} }

func (b *births) close() {
	if b.file != nil {
		_ = b.file.Close()
	}
}

// none says that nothing has started or ended since the last call: the host
// has as many threads as it had then, and the same process id was given out
// last.
func (b *births) none() bool {
	if b.file == nil {
		return false
	}
	var text [128]byte
	n, _ := procmem.ReadStart(b.fd, text[:])
	_, counts, ok := bytes.Cut(text[:n], []byte("/")) // "0.75 1.10 1.26 2/312 4711"
	if !ok {
		return false
	}
	same := bytes.Equal(counts, b.before)
	b.before = append(b.before[:0], counts...)
	return same
}
