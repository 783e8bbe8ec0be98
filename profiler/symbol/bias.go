package symbol

import (
	"debug/elf"
	"fmt"
	"os"

	"github.com/spinguard/spinguard/profiler/procmem"
)

var page = uint64(os.Getpagesize())

// Bias returns what must be added to a vaddr of the image to get the address
// in the process that has the mapping m. It is computed from the program
// headers, so that non-PIE, prelinked and oddly aligned files come out right;
// it may be "negative" in two's complement. False: no segment of the file
// belongs to such a mapping.
func (i *Image) Bias(m procmem.Mapping) (uint64, bool) {
	for _, exact := range []bool{true, false} {
		for _, p := range i.file.segments {
			if elf.ProgType(p.Type) != elf.PT_LOAD || exact && (elf.ProgFlag(p.Flags)&elf.PF_X != 0) != m.Exec {
				continue
			}
			first := p.Off &^ (page - 1)
			if m.Offset < first || m.Offset-first >= p.Filesz+(p.Off-first) {
				continue
			}
			return m.Start - (p.Vaddr - p.Off + m.Offset), true
		}
	}
	return 0, false
}

// ReadVaddr fills buf with what the file holds at a vaddr, as it was before
// relocation.
func (i *Image) ReadVaddr(vaddr uint64, buf []byte) error {
	for _, p := range i.file.segments {
		if elf.ProgType(p.Type) != elf.PT_LOAD || vaddr < p.Vaddr || vaddr-p.Vaddr >= p.Filesz ||
			uint64(len(buf)) > p.Filesz-(vaddr-p.Vaddr) {
			continue
		}
		data, err := i.file.bytes(p.Off+(vaddr-p.Vaddr), uint64(len(buf)), maxSection)
		copy(buf, data)
		return err
	}
	return fmt.Errorf("%d bytes at %#x of %s: in no segment", len(buf), vaddr, i.Path)
}
