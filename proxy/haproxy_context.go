package proxy

import (
	"encoding/binary"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// HAProxyContext names what a thread works for. It is a best effort; empty
// fields were not found.
type HAProxyContext struct {
	Frontend, Backend, Server string
}

const (
	streamWindow = 1024 // the backend lies behind two channels
	// Every word of the stack may be a stream.
	maxContextReads = 20_000

	sessionFar   = 64       // target and session come first
	serverWindow = 16 << 10 // struct server is some KiB; its name lies far behind
)

// Context finds the innermost stream on the live stack (the copied window
// from the stack pointer up) or in the registers. A stream is told by what it
// points to: first its target and its session, which begins with a pointer to
// its frontend, further behind its backend.
func (m *HAProxyMap) Context(mem procmem.Memory, live procmem.Window, registers ...uint64) HAProxyContext {
	mem = &budget{mem: mem, left: maxContextReads}
	words := append([]uint64(nil), registers...)
	for b := live.Data[:min(len(live.Data), maxStack)]; len(b) >= 8; b = b[8:] {
		words = append(words, binary.LittleEndian.Uint64(b))
	}
	tried := make(map[uint64]bool)
	end := live.Addr + uint64(len(live.Data))
	for _, p := range words {
		if p%8 != 0 || !userAddress(p) || tried[p] || p >= live.Addr && p < end || m.proxies[p] != "" {
			continue
		}
		tried[p] = true
		if c, ok := m.stream(mem, p); ok {
			return c
		}
	}
	return HAProxyContext{}
}

func (m *HAProxyMap) stream(mem procmem.Memory, addr uint64) (HAProxyContext, bool) {
	b, ok := readUpTo(mem, addr, streamWindow)
	if !ok {
		return HAProxyContext{}, false
	}
	backend := m.firstProxy(b)
	if backend == 0 {
		return HAProxyContext{}, false
	}
	frontend, target := m.session(mem, b)
	if frontend == "" {
		return HAProxyContext{}, false
	}
	c := HAProxyContext{Frontend: frontend, Backend: m.proxies[backend]}
	if s := m.sections[c.Backend]; s != nil && s.kind == "frontend" {
		c.Backend = "" // not chosen yet
	} else if s != nil {
		c.Server = serverName(mem, target, backend, s)
	}
	return c, true
}

func (m *HAProxyMap) firstProxy(b []byte) uint64 {
	for ; len(b) >= 8; b = b[8:] {
		if p := binary.LittleEndian.Uint64(b); m.proxies[p] != "" {
			return p
		}
	}
	return 0
}

// session finds the pointer to a structure whose first word is a proxy; the
// word before it is the target of the stream, 0 if none is chosen yet.
func (m *HAProxyMap) session(mem procmem.Memory, b []byte) (frontend string, target uint64) {
	for at := 8; at+8 <= min(len(b), sessionFar); at += 8 {
		p := binary.LittleEndian.Uint64(b[at:])
		if p%8 != 0 || !userAddress(p) || m.proxies[p] != "" {
			continue
		}
		if fe, err := procmem.Uint64(mem, p); err == nil && m.proxies[fe] != "" {
			return m.proxies[fe], binary.LittleEndian.Uint64(b[at-8:])
		}
	}
	return "", 0
}

// serverName believes that the target is a server if it points back to the
// backend and to a name that the backend's section has.
func serverName(mem procmem.Memory, target, backend uint64, section *haproxySection) string {
	if target%8 != 0 || !userAddress(target) || target == backend {
		return ""
	}
	window, ok := readLarge(mem, target, serverWindow)
	if !ok || !holds(window, backend) {
		return ""
	}
	for ; len(window) >= 8; window = window[8:] {
		if name := readName(mem, binary.LittleEndian.Uint64(window)); section.servers[name] {
			return name
		}
	}
	return ""
}

func holds(b []byte, word uint64) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) == word {
			return true
		}
	}
	return false
}

// Servers returns how many servers a backend has in the configuration.
func (m *HAProxyMap) Servers(backend string) int {
	if s := m.sections[backend]; s != nil {
		return len(s.servers)
	}
	return 0
}
