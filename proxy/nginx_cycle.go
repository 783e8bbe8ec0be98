package proxy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// nginxCycle is what the configuration of a running nginx says of itself.
type nginxCycle struct {
	conf, prefix string
	listen       []string
}

const (
	cycleWindow  = 1024 // ngx_cycle_t is about 650 bytes
	maxListening = 256
)

// readCycle reads an ngx_cycle_t by content: the order of its members is the
// same in every version, their offsets are not.
func readCycle(mem procmem.Memory, addr uint64) (nginxCycle, bool) {
	b, ok := readUpTo(mem, addr, cycleWindow)
	if !ok {
		return nginxCycle{}, false
	}
	c := nginxCycle{listen: findListening(mem, b)}
	c.conf, c.prefix = findPaths(mem, b)
	return c, c.conf != ""
}

// readUpTo reads size bytes, or fewer where the mapping ends before.
func readUpTo(mem procmem.Memory, addr uint64, size int) ([]byte, bool) {
	b := make([]byte, size)
	if mem.ReadMemory(addr, b) == nil {
		return b, true
	}
	// The next page may not be there.
	short := int(4096 - addr%4096)
	if short >= size {
		return nil, false
	}
	if mem.ReadMemory(addr, b[:short]) != nil {
		return nil, false
	}
	return b[:short], true
}

// findPaths looks for four strings in a row: conf_file, conf_param,
// conf_prefix, prefix. Both prefixes end with a slash.
func findPaths(mem procmem.Memory, b []byte) (conf, prefix string) {
	for at := 0; at+64 <= len(b); at += 8 {
		confPrefix, ok := readStr(mem, b[at+32:], 4096)
		if !ok || !strings.HasPrefix(confPrefix, "/") || !strings.HasSuffix(confPrefix, "/") {
			continue
		}
		file, ok := readStr(mem, b[at:], 4096)
		if !ok || !strings.HasPrefix(file, confPrefix) {
			continue
		}
		dir, ok := readStr(mem, b[at+48:], 4096)
		if !ok || !strings.HasSuffix(dir, "/") {
			continue
		}
		return file, dir
	}
	return "", ""
}

// readStr reads an ngx_str_t (length, pointer) of at most limit bytes; it must
// be printable.
func readStr(mem procmem.Memory, b []byte, limit uint64) (string, bool) {
	if len(b) < 16 {
		return "", false
	}
	size, addr := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if size == 0 || size > limit || !userAddress(addr) {
		return "", false
	}
	text := make([]byte, size)
	if mem.ReadMemory(addr, text) != nil || !printable(text) {
		return "", false
	}
	return string(text), true
}

// userAddress says whether a word may be a pointer of a user process.
func userAddress(a uint64) bool { return a >= 4096 && a < 1<<56 }

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// findListening looks for the ngx_array_t (elements, count, size, allocated,
// pool) whose elements begin like an ngx_listening_t.
func findListening(mem procmem.Memory, b []byte) []string {
	for at := 0; at+40 <= len(b); at += 8 {
		elements, count := binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:])
		size, allocated := binary.LittleEndian.Uint64(b[at+16:]), binary.LittleEndian.Uint64(b[at+24:])
		if !userAddress(elements) || count == 0 || count > allocated || allocated > 1<<16 ||
			size < 64 || size > 1024 || size%8 != 0 {
			continue
		}
		if list, ok := readListening(mem, elements, size, min(count, maxListening)); ok {
			return list
		}
	}
	return nil
}

// readListening reads descriptor 0, sockaddr pointer 8 and its length 16 of
// each element. With reuseport an address is there once per worker.
func readListening(mem procmem.Memory, addr, size, count uint64) ([]string, bool) {
	seen := make(map[string]bool)
	for i := range count {
		var b [24]byte
		if mem.ReadMemory(addr+i*size, b[:]) != nil {
			return nil, false
		}
		text, ok := readSockaddr(mem, binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:]))
		if !ok {
			return nil, false
		}
		seen[text] = true
	}
	list := make([]string, 0, len(seen))
	for text := range seen {
		list = append(list, text)
	}
	sort.Strings(list)
	return list, len(list) > 0
}

// readSockaddr reads a socket address of the given length; the length must
// fit the family.
func readSockaddr(mem procmem.Memory, addr uint64, size uint32) (string, bool) {
	if !userAddress(addr) || size < 16 || size > 110 {
		return "", false
	}
	b := make([]byte, size)
	if mem.ReadMemory(addr, b) != nil {
		return "", false
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.LittleEndian.Uint16(b); {
	case family == 2 && size == 16:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port).String(), true
	case family == 10 && size == 28:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), port).String(), true
	case family == 1:
		path, _, _ := strings.Cut(string(b[2:]), "\x00")
		if path == "" || !printable([]byte(path)) {
			return "", false
		}
		return fmt.Sprintf("unix:%s", path), true
	}
	return "", false
}
