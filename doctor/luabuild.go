package doctor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

var luajitVersion = regexp.MustCompile(`LuaJIT 2\.[0-9][0-9A-Za-z.+-]{0,40}`)

// maxLibraries bounds the files of a worker that are searched for LuaJIT.
const maxLibraries = 64

// luaBuild names the LuaJIT of a process: its version and the file that it is
// in, as the process sees it.
func luaBuild(pid int) string {
	maps, err := procmem.ReadMaps(pid)
	if err != nil {
		return "LuaJIT"
	}
	var files []string
	for _, m := range maps {
		if m.Exec && strings.HasPrefix(m.Path, "/") && !slices.Contains(files, m.Path) && len(files) < maxLibraries {
			files = append(files, m.Path)
		}
	}
	// Most have it in a library of that name, OpenResty may have it inside.
	slices.SortStableFunc(files, func(a, b string) int { return unnamed(a) - unnamed(b) })
	r := rootReader(fmt.Sprintf("/proc/%d/root", pid))
	for _, file := range files {
		text, err := r.Read(file)
		if err != nil {
			continue
		}
		if v := luajitVersion.Find(text); v != nil {
			return fmt.Sprintf("%s in %s", v, file)
		}
	}
	return "LuaJIT"
}

func unnamed(file string) int {
	if strings.Contains(path.Base(file), "luajit") {
		return 0
	}
	return 1
}
