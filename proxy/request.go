package proxy

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// RequestID tells one request from another, also when nginx uses the same
// memory again.
type RequestID struct {
	Addr  uint64 // of ngx_http_request_t
	Conn  uint64 // of its ngx_connection_t
	Start int64  // milliseconds since 1970
}

// Request is a request that an nginx worker serves. All text comes from the
// memory of the worker, so in the end from a client: it is printable and cut.
type Request struct {
	RequestID
	Main       uint64 // address of the main request; another one than Addr for a subrequest
	Subrequest bool
	Started    time.Time
	Method     string
	Path       string // of the request line, without query and credentials
	Query      string // behind the "?", unmasked; see Line
	HasQuery   bool
	Proto      string // "HTTP/1.1"; empty for HTTP/0.9
	Host       string // the Host header; empty if not found
	URI        string // as rewritten by nginx, without arguments; a subrequest's own
	Cut        bool   // the request line is longer than what was kept
	Upstream   Upstream
}

const (
	requestMagic  = 0x50545448 // "HTTP"
	requestWindow = 2048       // ngx_http_request_t is about 1300 bytes
	maxText       = 512        // bytes of text that are kept
	maxCandidates = 64
)

// FindRequest finds the request that a worker is working on: the one at
// exdata (what lua_State.exdata holds; 0: unknown), else the innermost on the
// live stack, that is the copied window from the stack pointer up, or in the
// registers. It returns false if there is none. The work is bounded, whatever
// the memory holds. For one worker again and again, a RequestFinder is cheaper.
func FindRequest(mem procmem.Memory, live procmem.Window, exdata uint64, registers ...uint64) (Request, bool) {
	var f RequestFinder
	return f.Find(mem, live, exdata, registers...)
}

// RequestFinder finds the requests of one worker. It learns where members lie
// and looks there first, but believes nothing that does not prove itself again.
// The zero value is ready. One goroutine may use it.
type RequestFinder struct {
	// Code says that an address is one of code, where no request lies: a stack
	// is full of them. nil: not known.
	Code func(addr uint64) bool

	line, host           int // offsets in ngx_http_request_t; 0: not known yet
	upstream, conf, peer int // of r->upstream, and in ngx_http_upstream_t
	empty                [upstreamWords]uint64
	vain                 [upstreamWords]uint8 // requests in which these led to no upstream
	searches             int
}

// Find is FindRequest.
func (f *RequestFinder) Find(mem procmem.Memory, live procmem.Window, exdata uint64, registers ...uint64) (Request, bool) {
	mem = &budget{mem: mem, left: maxReads}
	at, b, ok := f.find(mem, live, exdata, registers)
	if !ok {
		return Request{}, false
	}
	r := at.request(mem, b)
	r.Host = f.findHost(mem, b)
	r.Upstream = f.findUpstream(mem, b)
	return r, true
}

// IdentifyRequest is FindRequest for the identity only: a few reads.
func IdentifyRequest(mem procmem.Memory, live procmem.Window, exdata uint64, registers ...uint64) (RequestID, bool) {
	var f RequestFinder
	at, _, ok := f.find(&budget{mem: mem, left: maxReads}, live, exdata, registers)
	return at.RequestID, ok
}

// found is a request whose line was found.
type found struct {
	RequestID
	requestLine
}

func (f *RequestFinder) find(mem procmem.Memory, live procmem.Window, exdata uint64, registers []uint64) (found, []byte, bool) {
	tried := make(map[uint64]bool, 8)
	end := live.Addr + uint64(len(live.Data))
	try := func(addr uint64) (found, []byte, bool) {
		if addr%8 != 0 || !userAddress(addr) || tried[addr] || addr >= live.Addr && addr < end {
			return found{}, nil, false
		}
		if f.Code != nil && f.Code(addr) {
			return found{}, nil, false
		}
		if magic, err := procmem.Uint32(mem, addr); err != nil || magic != requestMagic {
			return found{}, nil, false
		}
		tried[addr] = true
		return f.read(mem, addr)
	}
	if at, b, ok := try(exdata); ok {
		return at, b, true
	}
	for _, addr := range registers {
		if at, b, ok := try(addr); ok {
			return at, b, true
		}
	}
	words := live.Data[:min(len(live.Data), maxStack)]
	for ; len(words) >= 8 && len(tried) < maxCandidates; words = words[8:] {
		if at, b, ok := try(binary.LittleEndian.Uint64(words)); ok {
			return at, b, true
		}
	}
	return found{}, nil, false
}

const (
	maxStack = 64 << 10
	// A search in memory made to mislead ends after so many reads; one in a
	// real worker needs some hundreds.
	maxReads = 4096
)

// budget is a memory that can be read only so often.
type budget struct {
	mem  procmem.Memory
	left int
}

func (b *budget) ReadMemory(addr uint64, buf []byte) error {
	if b.left == 0 {
		return errBudget
	}
	b.left--
	return b.mem.ReadMemory(addr, buf)
}

var errBudget = errors.New("search in memory: too many reads")

func (f *RequestFinder) read(mem procmem.Memory, addr uint64) (found, []byte, bool) {
	b, ok := readUpTo(mem, addr, requestWindow)
	if !ok || len(b) < 64 {
		return found{}, nil, false
	}
	line, ok := f.findLine(mem, b)
	if !ok {
		return found{}, nil, false
	}
	conn := binary.LittleEndian.Uint64(b[8:])
	return found{RequestID{Addr: addr, Conn: conn, Start: line.start}, line}, b, true
}

// request reads the rest: what lies behind the request line in the structure.
func (at found) request(mem procmem.Memory, b []byte) Request {
	r := Request{RequestID: at.RequestID, Started: time.UnixMilli(at.start).UTC(), Main: at.Addr}
	r.Method, r.Path, r.Query, r.HasQuery, r.Proto = splitLine(at.head, at.proto)
	r.Cut = at.cut
	if uri, ok := readText(mem, b[min(at.offset+16, len(b)):]); ok {
		r.URI = uri
	}
	r.Main = findMain(mem, b[at.offset:], at.Addr)
	r.Subrequest = r.Main != at.Addr
	return r
}

// findMain: the first pointer to a request behind the request line is r->main.
func findMain(mem procmem.Memory, b []byte, self uint64) uint64 {
	const far = 256
	for at := 16; at+8 <= min(len(b), far); at += 8 {
		p := binary.LittleEndian.Uint64(b[at:])
		if p == self {
			return self
		}
		if p%8 != 0 || !userAddress(p) {
			continue
		}
		if magic, err := procmem.Uint32(mem, p); err == nil && magic == requestMagic {
			return p
		}
	}
	return self
}

// Line is the request line for people: "GET /shop/cart/17 HTTP/1.1". The query
// string, which may hold secrets, is shown only on demand, else as "?***".
func (r Request) Line(showQuery bool) string {
	var b strings.Builder
	b.WriteString(r.Method)
	b.WriteByte(' ')
	b.WriteString(r.Path)
	switch {
	case r.HasQuery && showQuery:
		b.WriteString("?" + r.Query)
	case r.HasQuery:
		b.WriteString("?***")
	}
	if r.Cut {
		b.WriteString("...")
	}
	if r.Proto != "" {
		b.WriteString(" " + r.Proto)
	}
	return b.String()
}
