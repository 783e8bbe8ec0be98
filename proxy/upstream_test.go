package proxy

import (
	"encoding/binary"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// block is a piece of memory at an address, filled word by word.
type block struct {
	addr uint64
	b    []byte
}

func newBlock(addr uint64, size int) *block { return &block{addr, make([]byte, size)} }

func (m *block) put(at int, word uint64) { binary.LittleEndian.PutUint64(m.b[at:], word) }

func (m *block) ReadMemory(addr uint64, buf []byte) error {
	if addr < m.addr || addr+uint64(len(buf)) > m.addr+uint64(len(m.b)) {
		return procmem.ErrGone
	}
	copy(buf, m.b[addr-m.addr:])
	return nil
}

// A member that led to no upstream again and again is left alone, but not for
// ever: a request that stays is found out in the end.
func TestAnUpstreamIsFoundWhereNoneWas(t *testing.T) {
	const base = 0x7f0000000000
	m := newBlock(base, 8192)
	m.put(2048+16, base+4096) // ngx_http_upstream_t points to its configuration
	m.put(4096+32, 3)         // the host's length
	m.put(4096+40, base+6000) // and text
	m.put(4096+48, base+6100) // the file
	m.put(4096+56, 12)        // and the line
	copy(m.b[6000:], "api")
	copy(m.b[6100:], "/etc/nginx/nginx.conf\x00")
	var f RequestFinder
	for i := range 3 * vainMost {
		other := make([]byte, 256) // its member points to something else
		binary.LittleEndian.PutUint64(other[upstreamFirst:], base+uint64(8*i))
		if u := f.findUpstream(m, other); u.Name != "" {
			t.Fatalf("upstream %q in a request without", u.Name)
		}
	}
	stays := make([]byte, 256)
	binary.LittleEndian.PutUint64(stays[upstreamFirst:], base+2048)
	for range vainEvery {
		if u := f.findUpstream(m, stays); u.Name == "api" && u.Line == 12 {
			return
		}
	}
	t.Errorf("after %d looks the upstream of a request that stays was not found", vainEvery)
}
