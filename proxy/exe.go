package proxy

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// exeKey names one state of one executable file. A file that is replaced in
// place gets another mtime or size.
type exeKey struct {
	dev, ino, size uint64
	mtime          unix.Timespec
}

// exe is what is known about an executable: its verdict, and the symbols that
// matter if it is a proxy. Kind is empty for everything else.
type exe struct {
	kind    Kind
	product string // "nginx", "haproxy", "caddy": the first part of a proxy's name
	version string
	entry   uint64 // e_entry: with AT_ENTRY it gives the load bias
	symbols map[string]elfSymbol
}

type elfSymbol struct{ value, size uint64 }

// Kernel threads and zombies have no executable.
var errNoExe = errors.New("no executable")

// statExe identifies the executable behind a pid, also one that was deleted
// or lies in another mount namespace.
func statExe(pid int) (exeKey, error) {
	var st unix.Stat_t
	if err := unix.Stat(procPath(pid, "exe"), &st); err != nil {
		return exeKey{}, errNoExe
	}
	return exeKey{dev: st.Dev, ino: st.Ino, size: uint64(st.Size), mtime: st.Mtim}, nil
}

// Every symbol that some kind needs. The first names of each kind prove it.
var (
	nginxProof   = []string{"ngx_current_msec", "ngx_cycle", "ngx_process"}
	haproxyProof = []string{"activity", "ha_thread_info", "proxies_list"}
	wanted       = map[string]bool{
		"ngx_current_msec": true, "ngx_cycle": true, "ngx_process": true, "ngx_worker": true, "ngx_exiting": true,
		"ngx_quit": true, "ngx_terminate": true, "ngx_parent": true, "ngx_is_privileged_agent": true,
		"activity": true, "ha_thread_info": true, "proxies_list": true, "ha_tgroup_info": true, "ha_thread_ctx": true,
		"master": true, "stopping": true, "haproxy_version": true,
	}
)

// readExe opens the executable of a process and judges it. An executable that
// cannot be understood is no proxy; only a failed open is an error.
func readExe(pid int) (*exe, error) {
	f, err := os.Open(procPath(pid, "exe"))
	if err != nil {
		return nil, errNoExe
	}
	defer f.Close()
	return judgeExe(f), nil
}

func judgeExe(f io.ReaderAt) *exe {
	image, err := elf.NewFile(f)
	if err != nil || image.Class != elf.ELFCLASS64 || image.ByteOrder != binary.LittleEndian {
		return &exe{}
	}
	e := &exe{entry: image.Entry}
	if image.Section(".go.buildinfo") != nil {
		e.judgeGo(f)
		return e
	}
	for _, table := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		proof := symbolTable(image, table)
		switch {
		case proof == nil:
		case proof.names(nginxProof):
			e.kind, e.symbols = Nginx, proof.lookup(wanted)
		case proof.names(haproxyProof):
			e.kind, e.symbols = HAProxy, proof.lookup(wanted)
		}
		if e.kind != "" {
			break
		}
	}
	if e.kind == "" {
		return &exe{}
	}
	e.product, e.version = productOf(image, e)
	return e
}

const maxTable = 64 << 20

// table is one raw symbol table with its strings.
type table struct{ symbols, strings []byte }

func symbolTable(image *elf.File, kind elf.SectionType) *table {
	section := image.SectionByType(kind)
	if section == nil || section.Link == 0 || int(section.Link) >= len(image.Sections) {
		return nil
	}
	strings := image.Sections[section.Link]
	if section.Size > maxTable || strings.Size > maxTable {
		return nil
	}
	// No NUL in front: linkers store a name that ends another one only once.
	if !holdsAny(strings.Open(), "ngx_cycle\x00", "proxies_list\x00") {
		return nil
	}
	text, err := strings.Data()
	if err != nil {
		return nil
	}
	data, err := section.Data()
	if err != nil {
		return nil
	}
	return &table{symbols: data, strings: text}
}

// holdsAny says whether one of the words can be read from r. It takes little
// memory: every program that is started on the host is looked at, and some have
// tens of megabytes of names.
func holdsAny(r io.Reader, words ...string) bool {
	const piece = 32 << 10
	longest := 0
	for _, w := range words {
		longest = max(longest, len(w))
	}
	buf := make([]byte, 0, longest+piece)
	for {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		for _, w := range words {
			if bytes.Contains(buf, []byte(w)) {
				return true
			}
		}
		if err != nil {
			return false
		}
		buf = buf[:copy(buf, buf[len(buf)-longest:])] // a word may lie across
	}
}

func (t *table) names(names []string) bool {
	found := t.lookup(wanted)
	for _, name := range names {
		if _, ok := found[name]; !ok {
			return false
		}
	}
	return true
}

// lookup returns the defined data symbols among the names. A 64-bit symbol is
// name 4, info 1, other 1, section 2, value 8, size 8.
func (t *table) lookup(names map[string]bool) map[string]elfSymbol {
	found := make(map[string]elfSymbol)
	for b := t.symbols; len(b) >= elf.Sym64Size; b = b[elf.Sym64Size:] {
		if elf.ST_TYPE(b[4]) != elf.STT_OBJECT || binary.LittleEndian.Uint16(b[6:]) == 0 {
			continue
		}
		name := cString(t.strings, binary.LittleEndian.Uint32(b))
		s := elfSymbol{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
		// Anybody may run a made-up executable: no address that overflows.
		if names[name] && s.value < 1<<56 && s.size < 1<<32 {
			found[name] = s
		}
	}
	return found
}

func cString(b []byte, at uint32) string {
	if uint64(at) >= uint64(len(b)) {
		return ""
	}
	rest := b[at:]
	if end := bytes.IndexByte(rest[:min(len(rest), 128)], 0); end >= 0 {
		return string(rest[:end])
	}
	return ""
}

var (
	nginxSays   = regexp.MustCompile(`nginx version: ([A-Za-z][\w-]{0,31})/(\d[\w.+-]{0,63})`)
	nginxServer = regexp.MustCompile(`\x00(nginx|openresty|Tengine|angie|Angie|freenginx)/(\d[\w.+-]{0,63})\x00`)
	haproxySays = regexp.MustCompile(`\d+\.\d+[\w.+-]*`)
)

// productOf reads the product and its version from the image's constants.
func productOf(image *elf.File, e *exe) (product, version string) {
	if e.kind == HAProxy {
		s := e.symbols["haproxy_version"]
		text := bytesAt(image, s.value, min(s.size, 64))
		if v := haproxySays.Find(text); v != nil {
			return "haproxy", fmt.Sprintf("haproxy/%s", v)
		}
		return "haproxy", ""
	}
	section := image.Section(".rodata")
	if section == nil || section.Size > maxTable {
		return "nginx", ""
	}
	text, err := section.Data()
	if err != nil {
		return "nginx", ""
	}
	for _, re := range []*regexp.Regexp{nginxSays, nginxServer} {
		if m := re.FindSubmatch(text); m != nil {
			return string(bytes.ToLower(m[1])), fmt.Sprintf("%s/%s", m[1], m[2])
		}
	}
	return "nginx", ""
}

// bytesAt reads initialized data of the image by its link-time address.
func bytesAt(image *elf.File, addr, size uint64) []byte {
	for _, p := range image.Progs {
		if p.Type != elf.PT_LOAD || addr < p.Vaddr || addr-p.Vaddr >= p.Filesz {
			continue
		}
		buf := make([]byte, min(size, p.Filesz-(addr-p.Vaddr)))
		if _, err := p.ReadAt(buf, int64(addr-p.Vaddr)); err != nil {
			return nil
		}
		return buf
	}
	return nil
}

// loadBias is the distance between link-time and run-time addresses, from the
// entry point that the kernel told the process.
func loadBias(pid int, e *exe) (uint64, error) {
	const atEntry = 9
	b, err := os.ReadFile(procPath(pid, "auxv"))
	if err != nil || len(b) == 0 {
		return 0, procmem.ErrGone // or it is a zombie
	}
	for ; len(b) >= 16; b = b[16:] {
		if binary.LittleEndian.Uint64(b) == atEntry {
			return binary.LittleEndian.Uint64(b[8:]) - e.entry, nil
		}
	}
	return 0, fmt.Errorf("auxiliary vector of pid %d: no entry point", pid)
}
