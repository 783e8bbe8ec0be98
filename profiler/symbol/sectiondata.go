package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"io"
)

// sectionData returns the contents of a section, unpacked where the file holds
// them compressed.
func (f *elfFile) sectionData(s section) ([]byte, error) {
	if elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil, badELF("section %s has no contents in this file", s.name)
	}
	raw, err := f.bytes(s.Off, s.Size, maxSection)
	if err != nil || elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED == 0 {
		return raw, err
	}
	return inflate(raw)
}

// inflate unpacks a section with a compression header (24 bytes: type,
// reserved, size, alignment).
func inflate(raw []byte) ([]byte, error) {
	const headSize = 24
	if len(raw) < headSize || elf.CompressionType(raw[0]) != elf.COMPRESS_ZLIB {
		return nil, badELF("section packed in an unknown way")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[headSize:]))
	if err != nil {
		return nil, badELF("packed section: %v", err)
	}
	return readBounded(z, maxSection)
}

// readBounded reads to the end, but refuses more than limit bytes.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, badELF("packed data: %v", err)
	}
	if int64(len(data)) > limit {
		return nil, badELF("packed data: more than %d bytes", limit)
	}
	return data, nil
}
