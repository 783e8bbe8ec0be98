package proxy

import (
	"encoding/binary"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Upstream is what a request's ngx_http_upstream_t says. It is a best effort:
// the structure is told by its content, since its layout depends on version
// and build options. Empty fields were not found.
type Upstream struct {
	Name string // of the upstream block, or the host of proxy_pass
	File string // where it is configured
	Line int
	Peer string // the address that was chosen last: "10.0.0.7:8080"
	// PeerName is the peer as configured, such as "10.0.0.7:8080" or a host name.
	PeerName string
}

const upstreamWindow = 1024

// findUpstream tries the first pointers of the request: r->upstream is one of
// them, behind the connection, the contexts and the event handlers.
func findUpstream(mem procmem.Memory, b []byte) Upstream {
	const first, last = 0x30, 0x68
	for at := first; at+8 <= min(len(b), last); at += 8 {
		p := binary.LittleEndian.Uint64(b[at:])
		if p%8 != 0 || !userAddress(p) {
			continue
		}
		window, ok := readUpTo(mem, p, upstreamWindow)
		if !ok {
			continue
		}
		if u, ok := readUpstream(mem, window); ok {
			u.Peer, u.PeerName = findPeer(mem, window)
			return u
		}
	}
	return Upstream{}
}

// readUpstream finds the pointer to the ngx_http_upstream_srv_conf_t.
func readUpstream(mem procmem.Memory, window []byte) (Upstream, bool) {
	for at := 0; at+8 <= len(window); at += 8 {
		p := binary.LittleEndian.Uint64(window[at:])
		if p%8 != 0 || !userAddress(p) {
			continue
		}
		if u, ok := readUpstreamConf(mem, p); ok {
			return u, true
		}
	}
	return Upstream{}, false
}

// readUpstreamConf finds three members in a row that prove each other: the
// host, the name of the configuration file, and a line number.
func readUpstreamConf(mem procmem.Memory, addr uint64) (Upstream, bool) {
	var b [128]byte
	if mem.ReadMemory(addr, b[:]) != nil {
		return Upstream{}, false
	}
	// Two handlers and their data, srv_conf, servers, flags come before.
	for at := 32; at+32 <= len(b); at += 8 {
		line := binary.LittleEndian.Uint64(b[at+24:])
		size := binary.LittleEndian.Uint64(b[at:])
		if line == 0 || line > 1<<20 || size == 0 || size > 255 {
			continue
		}
		file, ok := readPath(mem, binary.LittleEndian.Uint64(b[at+16:]))
		if !ok {
			continue
		}
		name, ok := readStr(mem, b[at:], 255)
		if !ok || strings.ContainsAny(name, " /") {
			continue
		}
		return Upstream{Name: sanitize(name), File: file, Line: int(line)}, true
	}
	return Upstream{}, false
}

// readPath reads a C string that is an absolute path.
func readPath(mem procmem.Memory, addr uint64) (string, bool) {
	if !userAddress(addr) {
		return "", false
	}
	b, ok := readUpTo(mem, addr, 256)
	if !ok || b[0] != '/' {
		return "", false
	}
	path, _, ended := strings.Cut(string(b), "\x00")
	if !ended || len(path) < 2 || !printable([]byte(path)) {
		return "", false
	}
	return sanitize(path), true
}

// findPeer finds u->peer by three members in a row: the socket address, its
// length, and a pointer to its name.
func findPeer(mem procmem.Memory, window []byte) (addr, name string) {
	const far = 256
	for at := 0; at+24 <= min(len(window), far); at += 8 {
		size := binary.LittleEndian.Uint32(window[at+8:])
		if size != 16 && size != 28 && size != 110 {
			continue
		}
		text, ok := readSockaddr(mem, binary.LittleEndian.Uint64(window[at:]), size)
		if !ok {
			continue
		}
		var str [16]byte
		if mem.ReadMemory(binary.LittleEndian.Uint64(window[at+16:]), str[:]) != nil {
			return text, ""
		}
		name, _ = readText(mem, str[:])
		return text, name
	}
	return "", ""
}
