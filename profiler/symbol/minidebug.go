package symbol

import (
	"bytes"

	"github.com/ulikunitz/xz/lzma"
)

const (
	maxMiniDebug = 64 << 20
	maxXZDict    = 64 << 20
)

// miniDebug unpacks .gnu_debugdata: an xz-packed ELF file that holds nothing
// but a symbol table, as Fedora and its kin ship it.
func (f *elfFile) miniDebug() (*elfFile, error) {
	s, ok := f.section(".gnu_debugdata")
	if !ok {
		return nil, badELF("no .gnu_debugdata")
	}
	raw, err := f.bytes(s.Off, s.Size, maxMiniDebug)
	if err != nil {
		return nil, err
	}
	data, err := unxz(raw)
	if err != nil {
		return nil, err
	}
	return parseELF(bytes.NewReader(data), int64(len(data)))
}

// unxz unpacks the first block of an xz stream. The xz package is not used for
// the container: it takes the dictionary's size, up to 4 GiB, from the file
// and allocates it before anything was checked.
func unxz(raw []byte) ([]byte, error) {
	const streamHeader = 12
	if len(raw) < streamHeader+12 || string(raw[:6]) != "\xfd7zXZ\x00" {
		return nil, badELF("not an xz stream")
	}
	block := raw[streamHeader:]
	size := (int(block[0]) + 1) * 4
	if block[0] == 0 || size > len(block) {
		return nil, badELF("xz block header of %d bytes", size)
	}
	dict, err := xzDictionary(block[:size])
	if err != nil {
		return nil, err
	}
	z, err := lzma.Reader2Config{DictCap: dict}.NewReader2(bytes.NewReader(block[size:]))
	if err != nil {
		return nil, badELF("xz: %v", err)
	}
	return readBounded(z, maxMiniDebug)
}

// xzDictionary finds the dictionary size in a block header: size byte, flags,
// two optional lengths, then one filter, which must be LZMA2.
func xzDictionary(head []byte) (int, error) {
	const packedSize, unpackedSize, filters = 0x40, 0x80, 0x03
	flags, rest := head[1], head[2:]
	for _, present := range []bool{flags&packedSize != 0, flags&unpackedSize != 0} {
		for present && len(rest) > 0 {
			present = rest[0]&0x80 != 0
			rest = rest[1:]
		}
	}
	if flags&filters != 0 || len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 {
		return 0, badELF("xz with filters other than LZMA2")
	}
	size, err := lzma.DecodeDictCap(rest[2])
	if err != nil || size > maxXZDict {
		return 0, badELF("xz dictionary of %d bytes", size)
	}
	return int(max(size, lzma.MinDictCap)), nil
}
