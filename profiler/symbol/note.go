package symbol

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
)

const maxNotes = 64 << 10

// buildID returns the GNU build id in hex, or "".
func (f *elfFile) buildID() string {
	for _, p := range f.segments {
		if elf.ProgType(p.Type) != elf.PT_NOTE {
			continue
		}
		if id := f.noteID(p.Off, p.Filesz); id != "" {
			return id
		}
	}
	if s, ok := f.section(".note.gnu.build-id"); ok { // debug files keep only sections
		return f.noteID(s.Off, s.Size)
	}
	return ""
}

func (f *elfFile) noteID(off, size uint64) string {
	raw, err := f.bytes(off, size, maxNotes)
	if err != nil {
		return ""
	}
	const gnuBuildID = 3
	for len(raw) >= 12 {
		name := uint64(binary.LittleEndian.Uint32(raw))
		desc := uint64(binary.LittleEndian.Uint32(raw[4:]))
		kind := binary.LittleEndian.Uint32(raw[8:])
		raw = raw[12:]
		padded := align4(name)
		if padded+desc > uint64(len(raw)) {
			return ""
		}
		if kind == gnuBuildID && name == 4 && string(raw[:4]) == "GNU\x00" && desc > 0 && desc <= 64 {
			return hex.EncodeToString(raw[padded : padded+desc])
		}
		raw = raw[min(padded+align4(desc), uint64(len(raw))):]
	}
	return ""
}

func align4(n uint64) uint64 { return (n + 3) &^ 3 }
