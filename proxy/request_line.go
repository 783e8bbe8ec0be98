package proxy

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// requestLine is the r->request_line of a request and what lies before it.
type requestLine struct {
	offset int    // in the structure
	start  int64  // milliseconds since 1970
	head   []byte // its first bytes
	proto  string // its end
	cut    bool
}

// findLine finds five members in a row that prove each other: start_sec,
// start_msec, method, http_version and the request line as (length, pointer).
// Their order is the same in every version of nginx.
func (f *RequestFinder) findLine(mem procmem.Memory, b []byte) (requestLine, bool) {
	if f.line != 0 {
		if line, ok := lineAt(mem, b, f.line); ok {
			return line, true
		}
	}
	for at := 8; at+lineMembers <= len(b); at += 8 {
		if line, ok := lineAt(mem, b, at); ok {
			f.line = at
			return line, true
		}
	}
	return requestLine{}, false
}

const lineMembers = 48

func lineAt(mem procmem.Memory, b []byte, at int) (requestLine, bool) {
	if at+lineMembers > len(b) {
		return requestLine{}, false
	}
	sec, msec := binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:])
	method, version := binary.LittleEndian.Uint64(b[at+16:]), binary.LittleEndian.Uint64(b[at+24:])
	if sec < 1e9 || sec > 1<<33 || msec >= 1000 || !isMethod(method) || !isVersion(version) {
		return requestLine{}, false
	}
	line, ok := readRequestLine(mem, b[at+32:], version)
	line.offset, line.start = at+32, int64(sec*1000+msec)
	return line, ok
}

// isMethod: methods are single bits, 1 is an unknown one.
func isMethod(m uint64) bool { return m != 0 && m&(m-1) == 0 && m < 1<<32 }

func isVersion(v uint64) bool {
	switch v {
	case 9, 1000, 1001, 2000, 3000:
		return true
	}
	return false
}

// Request lines are at most as long as one of large_client_header_buffers;
// HTTP/2 composes its line from header fields.
const maxRequestLine = 1 << 20

func readRequestLine(mem procmem.Memory, b []byte, version uint64) (requestLine, bool) {
	size, addr := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if size < 3 || size > maxRequestLine || !userAddress(addr) {
		return requestLine{}, false
	}
	head := make([]byte, min(size, maxText))
	if mem.ReadMemory(addr, head) != nil || !startsWithMethod(head) {
		return requestLine{}, false
	}
	line := requestLine{head: head}
	if version == 9 {
		return line, true
	}
	const protoSize = uint64(len(" HTTP/1.1"))
	if size < protoSize {
		return requestLine{}, false
	}
	end := make([]byte, protoSize)
	if mem.ReadMemory(addr+size-protoSize, end) != nil || !isProto(end[1:]) {
		return requestLine{}, false
	}
	line.proto = string(end[1:])
	if size <= maxText {
		line.head = head[:size-protoSize+1]
	} else {
		line.cut = true
	}
	return line, true
}

// startsWithMethod: nginx takes capitals, "_" and "-" for a method.
func startsWithMethod(b []byte) bool {
	for i, c := range b[:min(len(b), 33)] {
		if c == ' ' {
			return i > 0
		}
		if (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return false
		}
	}
	return false
}

func isProto(b []byte) bool {
	return string(b[:5]) == "HTTP/" && b[5] >= '0' && b[5] <= '9' && b[6] == '.' && b[7] >= '0' && b[7] <= '9'
}

// splitLine cuts a request line into its parts and makes them printable.
// Credentials in an absolute URI are masked.
func splitLine(head []byte, proto string) (method, path, query string, hasQuery bool, version string) {
	method, target, _ := strings.Cut(string(head), " ")
	target = strings.TrimRight(target, " ")
	path, query, hasQuery = strings.Cut(target, "?")
	return method, sanitize(maskUser(path)), sanitize(query), hasQuery, proto
}

// maskUser hides "user:password@" between "//" and the next slash.
func maskUser(path string) string {
	scheme, rest, ok := strings.Cut(path, "://")
	if !ok || strings.ContainsRune(scheme, '/') {
		return path
	}
	host, tail, slash := strings.Cut(rest, "/")
	at := strings.LastIndex(host, "@")
	if at < 0 {
		return path
	}
	path = scheme + "://***@" + host[at+1:]
	if slash {
		path += "/" + tail
	}
	return path
}

// sanitize makes foreign text printable ASCII: everything else is written as
// \xNN. The result is at most maxText bytes long.
func sanitize(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if b.Len()+4 > maxText {
			b.WriteString("...")
			break
		}
		if c >= ' ' && c < 0x7f {
			b.WriteByte(c)
			continue
		}
		b.WriteString(`\x`)
		if c < 0x10 {
			b.WriteByte('0')
		}
		b.WriteString(strconv.FormatUint(uint64(c), 16))
	}
	return b.String()
}

// readText reads an ngx_str_t as printable text, cut at maxText bytes.
func readText(mem procmem.Memory, b []byte) (string, bool) {
	if len(b) < 16 {
		return "", false
	}
	size, addr := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if size == 0 || size > maxRequestLine || !userAddress(addr) {
		return "", false
	}
	text := make([]byte, min(size, maxText))
	if mem.ReadMemory(addr, text) != nil {
		return "", false
	}
	return sanitize(string(text)), true
}
