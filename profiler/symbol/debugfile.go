package symbol

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"path"
)

const (
	debugRoot    = "/usr/lib/debug"
	maxDebugFile = 2 << 30
)

// openDebug finds the separate debug file of an image, in the process's root
// and then in the agent's: by build id, then by .gnu_debuglink. It returns
// nil where there is none.
func openDebug(pid int, i *Image) *elfFile {
	if _, ok := i.file.section(".symtab"); ok {
		return nil
	}
	if id := i.buildID; len(id) > 2 {
		name := path.Join(debugRoot, ".build-id", id[:2], id[2:]+".debug")
		match := func(f *elfFile) bool { return f.buildID() == id }
		if f := openMatching(pid, name, match); f != nil {
			return f
		}
	}
	link, sum, ok := i.debugLink()
	if !ok {
		return nil
	}
	dir := path.Dir(i.Path)
	match := func(f *elfFile) bool { return checksum(f) == sum }
	for _, name := range []string{path.Join(dir, ".debug", link), path.Join(debugRoot, dir, link)} {
		if f := openMatching(pid, name, match); f != nil {
			return f
		}
	}
	return nil
}

func openMatching(pid int, name string, match func(*elfFile) bool) *elfFile {
	f, key, err := openInRoot(pid, name)
	if err != nil {
		f, key, err = openRegular(name)
	}
	if err != nil || key.size > maxDebugFile {
		return nil
	}
	debug, err := parseELF(f, key.size)
	if err != nil || !match(debug) {
		f.Close()
		return nil
	}
	return debug
}

// debugLink reads .gnu_debuglink: a file name, zero-padded to four bytes, and
// the CRC of that file.
func (i *Image) debugLink() (name string, sum uint32, ok bool) {
	s, found := i.file.section(".gnu_debuglink")
	if !found {
		return "", 0, false
	}
	raw, err := i.file.bytes(s.Off, s.Size, 4096)
	if err != nil {
		return "", 0, false
	}
	end := bytes.IndexByte(raw, 0)
	if end <= 0 {
		return "", 0, false
	}
	at := int(align4(uint64(end + 1)))
	if at+4 > len(raw) {
		return "", 0, false
	}
	name = string(raw[:end])
	if name != path.Base(name) || name == ".." {
		return "", 0, false
	}
	return name, uint32(raw[at]) | uint32(raw[at+1])<<8 | uint32(raw[at+2])<<16 | uint32(raw[at+3])<<24, true
}

func checksum(f *elfFile) uint32 {
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(f.r, 0, f.size)); err != nil {
		return 0
	}
	return sum.Sum32()
}

// String helps to read test failures.
func (i *Image) String() string { return fmt.Sprintf("%s (build id %s)", i.Path, i.buildID) }
