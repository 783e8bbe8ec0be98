package procmem

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64
	Offset     uint64
	Read       bool
	Write      bool
	Exec       bool
	Shared     bool
	Dev        string // "major:minor", hex
	Inode      uint64
	Path       string // "[heap]", "[stack]", "[vdso]", a file, or empty; without " (deleted)"
	Deleted    bool   // the file is no longer at Path
}

// Anonymous says that the mapping has no file and no special name.
func (m Mapping) Anonymous() bool { return m.Inode == 0 && m.Path == "" }

// Maps is a list of mappings, sorted by address.
type Maps []Mapping

// Find returns the mapping that holds the address.
func (ms Maps) Find(addr uint64) (Mapping, bool) {
	i := sort.Search(len(ms), func(i int) bool { return ms[i].End > addr })
	if i < len(ms) && ms[i].Start <= addr {
		return ms[i], true
	}
	return Mapping{}, false
}

// ReadMaps reads the mappings of a process.
func ReadMaps(pid int) (Maps, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, gone(err)
	}
	defer f.Close()
	ms, err := parseMaps(f)
	if err != nil {
		return nil, gone(err)
	}
	return ms, nil
}

func parseMaps(r io.Reader) (Maps, error) {
	var ms Maps
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 8192), 1<<20)
	for scan.Scan() {
		m, err := parseMapping(scan.Text())
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, scan.Err()
}

func parseMapping(line string) (Mapping, error) {
	bad := func() (Mapping, error) {
		return Mapping{}, fmt.Errorf("mapping %q: not a line of /proc/PID/maps", line)
	}
	head := strings.Fields(line)
	if len(head) < 5 || len(head[1]) < 4 {
		return bad()
	}
	start, end, ok := strings.Cut(head[0], "-")
	if !ok {
		return bad()
	}
	m := Mapping{
		Read: head[1][0] == 'r', Write: head[1][1] == 'w', Exec: head[1][2] == 'x', Shared: head[1][3] == 's',
		Dev: head[3],
	}
	var errs [4]error
	m.Start, errs[0] = strconv.ParseUint(start, 16, 64)
	m.End, errs[1] = strconv.ParseUint(end, 16, 64)
	m.Offset, errs[2] = strconv.ParseUint(head[2], 16, 64)
	m.Inode, errs[3] = strconv.ParseUint(head[4], 10, 64)
	for _, err := range errs {
		if err != nil {
			return bad()
		}
	}
	if m.End < m.Start {
		return bad()
	}
	m.Path, m.Deleted = mappingPath(line, head)
	return m, nil
}

// mappingPath cuts the path from the line itself: it may hold spaces.
func mappingPath(line string, head []string) (string, bool) {
	if len(head) < 6 {
		return "", false
	}
	rest := line
	for _, field := range head[:5] {
		rest = rest[strings.Index(rest, field)+len(field):]
	}
	return strings.CutSuffix(strings.TrimLeft(rest, " "), " (deleted)")
}
