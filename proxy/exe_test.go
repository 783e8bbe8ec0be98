package proxy

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
	"testing/iotest"
)

// asked remembers how much was asked for at once, and in all.
type asked struct {
	*bytes.Reader
	most, all int
}

func (a *asked) ReadAt(p []byte, off int64) (int, error) {
	a.most, a.all = max(a.most, len(p)), a.all+len(p)
	return a.Reader.ReadAt(p, off)
}

// TestNamesOfOtherProgramsAreNotTaken has programs whose symbols have megabytes
// of names. Those of a proxy are read whole, those of any other piece by piece.
func TestNamesOfOtherProgramsAreNotTaken(t *testing.T) {
	const length = 4 << 20
	for _, x := range []struct {
		last  string
		whole bool
	}{{"some_name", false}, {"ngx_cycle", true}} {
		f := &asked{Reader: bytes.NewReader(withNames(t, strings.Repeat("a_name\x00", length/7)+x.last+"\x00"))}
		if e := judgeExe(f); e.kind != "" {
			t.Errorf("%s: kind %q", x.last, e.kind)
		}
		if (f.most > 1<<20) != x.whole || f.all < length {
			t.Errorf("%s: at most %d bytes were read at once, %d in all", x.last, f.most, f.all)
		}
	}
}

// withNames makes an ELF file with one symbol and these names.
func withNames(t *testing.T, names string) []byte {
	t.Helper()
	const head, section = 64, 64
	body := uint64(head + 4*section)
	at := func(kind elf.SectionType, off, size uint64) elf.Section64 {
		return elf.Section64{Type: uint32(kind), Off: off, Size: size, Addralign: 1}
	}
	symbols := at(elf.SHT_SYMTAB, body, elf.Sym64Size)
	symbols.Link, symbols.Entsize = 2, elf.Sym64Size
	h := elf.Header64{
		Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Type: uint16(elf.ET_EXEC),
		Shoff: head, Ehsize: head, Shentsize: section, Shnum: 4, Shstrndx: 3,
	}
	var b bytes.Buffer
	for _, v := range []any{h, elf.Section64{}, symbols, at(elf.SHT_STRTAB, body+elf.Sym64Size, uint64(len(names))),
		at(elf.SHT_STRTAB, body, 1), elf.Sym64{}} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	return append(b.Bytes(), names...)
}

func TestHoldsAny(t *testing.T) {
	for _, before := range []int{0, 1, 32<<10 - 5, 32 << 10, 32<<10 + 5, 64<<10 - 3, 100_000} {
		text := strings.Repeat("x", before) + "ngx_cycle\x00" + strings.Repeat("y", 10)
		if !holdsAny(iotest.HalfReader(strings.NewReader(text)), "proxies_list\x00", "ngx_cycle\x00") {
			t.Errorf("not found behind %d bytes", before)
		}
		if holdsAny(strings.NewReader(text), "ngx_cycle_") {
			t.Errorf("found what is not there, behind %d bytes", before)
		}
	}
}
