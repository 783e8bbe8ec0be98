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

const (
	upstreamWindow = 1024
	// r->upstream is one of the first pointers of a request, behind the
	// connection, the contexts and the event handlers.
	upstreamFirst = 0x30
	upstreamWords = 7
)

// findUpstream looks where the upstream was found before, else among all
// candidates; the same candidates are not searched twice in vain.
func (f *RequestFinder) findUpstream(mem procmem.Memory, b []byte) Upstream {
	if f.upstream != 0 {
		u, _ := f.upstreamAt(mem, b, f.upstream)
		return u
	}
	var words [upstreamWords]uint64
	skipped := false
	for i := range words {
		if at := upstreamFirst + 8*i; at+8 <= len(b) {
			words[i] = binary.LittleEndian.Uint64(b[at:])
		}
	}
	if words == f.empty {
		return Upstream{}
	}
	f.searches++
	all := f.searches%vainEvery == 0
	for i := range words {
		if f.vain[i] >= vainMost && !all {
			skipped = true
			continue
		}
		at := upstreamFirst + 8*i
		if u, ok := f.upstreamAt(mem, b, at); ok {
			f.upstream = at
			return u
		}
		if words[i] != 0 && f.vain[i] < vainMost {
			f.vain[i]++
		}
	}
	if !skipped {
		f.empty = words
	}
	return Upstream{}
}

// A member that so many requests had, and that led to no upstream, is another
// one: r->upstream is null in a request without. It is looked at once in a
// while only, since what it points to is much to read.
const (
	vainMost  = 8
	vainEvery = 16
)

func (f *RequestFinder) upstreamAt(mem procmem.Memory, b []byte, at int) (Upstream, bool) {
	if at+8 > len(b) {
		return Upstream{}, false
	}
	p := binary.LittleEndian.Uint64(b[at:])
	if p%8 != 0 || !userAddress(p) {
		return Upstream{}, false
	}
	window, ok := readUpTo(mem, p, upstreamWindow)
	if !ok {
		return Upstream{}, false
	}
	u, ok := f.readUpstream(mem, window)
	if ok {
		u.Peer, u.PeerName = f.findPeer(mem, window)
	}
	return u, ok
}

// readUpstream finds the pointer to the ngx_http_upstream_srv_conf_t.
func (f *RequestFinder) readUpstream(mem procmem.Memory, window []byte) (Upstream, bool) {
	if f.conf != 0 {
		if u, ok := confAt(mem, window, f.conf); ok {
			return u, true
		}
	}
	for at := 8; at+8 <= len(window); at += 8 {
		if u, ok := confAt(mem, window, at); ok {
			f.conf = at
			return u, true
		}
	}
	return Upstream{}, false
}

func confAt(mem procmem.Memory, window []byte, at int) (Upstream, bool) {
	if at+8 > len(window) {
		return Upstream{}, false
	}
	p := binary.LittleEndian.Uint64(window[at:])
	if p%8 != 0 || !userAddress(p) {
		return Upstream{}, false
	}
	return readUpstreamConf(mem, p)
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
func (f *RequestFinder) findPeer(mem procmem.Memory, window []byte) (addr, name string) {
	const far = 256
	if f.peer != 0 {
		addr, name, _ = peerAt(mem, window, f.peer)
		return addr, name
	}
	for at := 8; at+24 <= min(len(window), far); at += 8 {
		if addr, name, ok := peerAt(mem, window, at); ok {
			f.peer = at
			return addr, name
		}
	}
	return "", ""
}

func peerAt(mem procmem.Memory, window []byte, at int) (addr, name string, ok bool) {
	if at+24 > len(window) {
		return "", "", false
	}
	size := binary.LittleEndian.Uint32(window[at+8:])
	if size != 16 && size != 28 && size != 110 {
		return "", "", false
	}
	addr, ok = readSockaddr(mem, binary.LittleEndian.Uint64(window[at:]), size)
	if !ok {
		return "", "", false
	}
	var str [16]byte
	if mem.ReadMemory(binary.LittleEndian.Uint64(window[at+16:]), str[:]) == nil {
		name, _ = readText(mem, str[:])
	}
	return addr, name, true
}
