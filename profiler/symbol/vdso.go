package symbol

import (
	"bytes"
	"fmt"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const (
	vdsoPath = "[vdso]"
	maxVDSO  = 1 << 20
)

// openVDSO copies the vDSO, which is no file, from the memory of the process.
func (c *Cache) openVDSO(pid int, m procmem.Mapping) (*Image, error) {
	if m.End <= m.Start || m.End-m.Start > maxVDSO {
		return nil, fmt.Errorf("vDSO of pid %d: %d bytes long", pid, m.End-m.Start)
	}
	p, err := procmem.Open(pid)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	data := make([]byte, m.End-m.Start)
	if err := p.ReadMemory(m.Start, data); err != nil {
		return nil, err
	}
	image, err := newImage(vdsoPath, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	if image.buildID == "" {
		return image, nil
	}
	return c.add(fileKey{size: int64(len(data))}, image), nil
}
