package proxy

import (
	"encoding/binary"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// findHost finds the Host header: among the pointers of the request, the one
// to an ngx_table_elt_t (hash, key, value, ...) whose key is "Host".
func findHost(mem procmem.Memory, b []byte) string {
	for at := 16; at+8 <= len(b); at += 8 {
		p := binary.LittleEndian.Uint64(b[at:])
		if p%8 != 0 || !userAddress(p) {
			continue
		}
		var header [40]byte
		if mem.ReadMemory(p, header[:]) != nil || binary.LittleEndian.Uint64(header[8:]) != 4 {
			continue
		}
		key, ok := readText(mem, header[8:])
		if !ok || !strings.EqualFold(key, "host") {
			continue
		}
		if value, ok := readText(mem, header[24:]); ok {
			return value
		}
	}
	return ""
}
