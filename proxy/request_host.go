package proxy

import (
	"encoding/binary"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// findHost finds the Host header: among the pointers of the request, the one
// to an ngx_table_elt_t (hash, key, value, ...) whose key is "Host".
func (f *RequestFinder) findHost(mem procmem.Memory, b []byte) string {
	if f.host != 0 && f.host+8 <= len(b) {
		if binary.LittleEndian.Uint64(b[f.host:]) == 0 {
			return "" // HTTP/1.0 needs none
		}
		if host, ok := hostAt(mem, b, f.host); ok {
			return host
		}
	}
	for at := 16; at+8 <= len(b); at += 8 {
		if host, ok := hostAt(mem, b, at); ok {
			f.host = at
			return host
		}
	}
	return ""
}

func hostAt(mem procmem.Memory, b []byte, at int) (string, bool) {
	p := binary.LittleEndian.Uint64(b[at:])
	if p%8 != 0 || !userAddress(p) {
		return "", false
	}
	var header [40]byte
	if mem.ReadMemory(p, header[:]) != nil || binary.LittleEndian.Uint64(header[8:]) != 4 {
		return "", false
	}
	key, ok := readText(mem, header[8:])
	if !ok || !strings.EqualFold(key, "host") {
		return "", false
	}
	return readText(mem, header[24:])
}
