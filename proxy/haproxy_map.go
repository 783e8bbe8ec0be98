package proxy

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// HAProxyMap knows where the frontends and backends of a HAProxy process lie
// in its memory. It belongs to one process and may be shared once it is made.
type HAProxyMap struct {
	sections map[string]*haproxySection
	proxies  map[uint64]string // struct proxy to name
}

const (
	proxyWindow  = 12 << 10 // struct proxy is 5 to 6 KiB
	maxProxies   = 4096
	maxNameBytes = 128
	maxWalkReads = 50_000
)

var errNoProxies = errors.New("list of proxies of HAProxy: not understood")

// NewHAProxyMap finds the proxies of the process of a worker by the names in
// its configuration, whose files the process was started with.
func NewHAProxyMap(mem procmem.Memory, w Worker) (*HAProxyMap, error) {
	e, err := readExe(w.PID)
	if err != nil {
		return nil, err
	}
	bias, err := loadBias(w.PID, e)
	if err != nil {
		return nil, err
	}
	s, ok := e.symbols["proxies_list"]
	if !ok {
		return nil, errNoProxies
	}
	first, err := procmem.Uint64(mem, s.value+bias)
	if err != nil {
		return nil, err
	}
	m := &HAProxyMap{sections: make(map[string]*haproxySection)}
	for _, file := range haproxyConf(w.PID) {
		for _, text := range haproxyTexts(w.PID, w.Master, file) {
			parseSections(text, m.sections)
		}
	}
	if m.proxies = m.walk(&budget{mem: mem, left: maxWalkReads}, first); len(m.proxies) == 0 {
		return nil, errNoProxies
	}
	return m, nil
}

// walk derives where a struct proxy keeps its name and the link to the next
// one: the pair of offsets that leads to the most names.
func (m *HAProxyMap) walk(mem procmem.Memory, first uint64) map[uint64]string {
	window, ok := readLarge(mem, first, proxyWindow)
	if !ok {
		return nil
	}
	var best map[uint64]string
	for name := 0; name+8 <= len(window); name += 8 {
		if !m.known(readName(mem, binary.LittleEndian.Uint64(window[name:]))) {
			continue
		}
		for next := 0; next+8 <= len(window); next += 8 {
			q := binary.LittleEndian.Uint64(window[next:])
			if q == first || q%8 != 0 || !userAddress(q) {
				continue
			}
			if list := m.follow(mem, first, uint64(name), uint64(next)); len(list) > len(best) {
				best = list
			}
		}
	}
	return best
}

// follow walks the list as long as it finds known names.
func (m *HAProxyMap) follow(mem procmem.Memory, p, name, next uint64) map[uint64]string {
	list := make(map[uint64]string)
	for p != 0 && len(list) < maxProxies {
		addr, err := procmem.Uint64(mem, p+name)
		text := readName(mem, addr)
		if err != nil || !m.known(text) || list[p] != "" {
			break
		}
		list[p] = text
		if p, err = procmem.Uint64(mem, p+next); err != nil {
			break
		}
	}
	return list
}

// known: names of the configuration and of HAProxy's own proxies.
func (m *HAProxyMap) known(name string) bool {
	return m.sections[name] != nil || name == "GLOBAL" || name == "MASTER" ||
		strings.HasPrefix(name, "<") && strings.HasSuffix(name, ">")
}

// readName reads a short C string of printable characters.
func readName(mem procmem.Memory, addr uint64) string {
	if !userAddress(addr) {
		return ""
	}
	b, ok := readUpTo(mem, addr, maxNameBytes)
	if !ok {
		return ""
	}
	text, _, ended := strings.Cut(string(b), "\x00")
	if !ended || text == "" || !printable([]byte(text)) {
		return ""
	}
	return sanitize(text)
}

// readLarge reads as many whole pages of a window as there are.
func readLarge(mem procmem.Memory, addr uint64, size int) ([]byte, bool) {
	b := make([]byte, size)
	for ; size > 0; size -= 4096 {
		if mem.ReadMemory(addr, b[:size]) == nil {
			return b[:size], true
		}
	}
	return nil, false
}
