package symbol

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"os"
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
		if f := openMatching(pid, name, name, match); f != nil {
			return f
		}
	}
	link, sum, ok := i.debugLink()
	if !ok {
		return nil
	}
	inside, outside := path.Dir(pathInRoot(pid, i.Path)), path.Dir(i.Path)
	match := func(f *elfFile) bool { return checksum(f) == sum }
	for _, place := range []string{"%s", "%s/.debug", debugRoot + "%s"} {
		in, out := fmt.Sprintf(place, inside), fmt.Sprintf(place, outside)
		if f := openMatching(pid, path.Join(in, link), path.Join(out, link), match); f != nil {
			return f
		}
	}
	return nil
}

// openMatching opens the first file, inside the process's root or outside in
// the agent's, that proves to belong to the image: a container may hold the
// debug files of an older build than the host.
func openMatching(pid int, inside, outside string, match func(*elfFile) bool) *elfFile {
	var refused fileKey
	for _, open := range []func() (*os.File, fileKey, error){
		func() (*os.File, fileKey, error) { return openInRoot(pid, inside) },
		func() (*os.File, fileKey, error) { return openRegular(outside) },
	} {
		f, key, err := open()
		if err != nil {
			continue
		}
		if key != refused && key.size <= maxDebugFile {
			if debug, err := parseELF(f, key.size); err == nil && match(debug) {
				return debug
			}
		}
		f.Close()
		refused = key
	}
	return nil
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
