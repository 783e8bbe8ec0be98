package profiler

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/profiler/unwind"
)

const (
	mapsEvery = time.Second // mappings are read again this often at most, on average
	mapsBurst = 10          // and this often in a row: a young worker maps much
)

// kernelNames is read once for all processes: there is one kernel.
var kernelNames symbol.Kernel

// OpenKernelNames makes names of kernel functions work also after the program
// has given up CAP_SYSLOG.
func OpenKernelNames() { kernelNames.Open() }

// modules knows what lies where in one process.
type modules struct {
	pid      int
	cache    *symbol.Cache
	now      func() time.Time
	unwinder *unwind.Unwinder
	switches bool // its threads run on several stacks: a program of Go

	maps     procmem.Maps
	read     time.Time         // up to when the reads allowed since are used up
	mappings map[uint64]placed // those that frames lie in, by start
	pcre     *bool             // whether there is a PCRE in the process; nil: not looked yet
}

// placed is a mapping as it is told in frames.
type placed struct {
	procmem.Mapping
	told *stack.Mapping
}

func openModules(pid int, cache *symbol.Cache, now func() time.Time) (*modules, error) {
	m := &modules{pid: pid, cache: cache, now: now, mappings: map[uint64]placed{}}
	maps, err := procmem.ReadMaps(pid)
	if err != nil {
		return nil, err
	}
	m.maps, m.read = maps, now().Add(-mapsBurst*mapsEvery)
	m.unwinder = unwind.New(cache, pid, maps)
	m.switches = m.unwinder.Go()
	return m, nil
}

// SwitchesStacks says whether the program's threads run on several stacks, and
// keep frame pointers that lead from one to the other: those of Go do.
func (p *Process) SwitchesStacks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.modules.switches
}

// refresh reads the mappings again, unless that was done too often of late, and
// says whether they changed.
func (m *modules) refresh() bool {
	now := m.now()
	if now.Sub(m.read) < mapsEvery {
		return false
	}
	if oldest := now.Add(-mapsBurst * mapsEvery); m.read.Before(oldest) {
		m.read = oldest
	}
	m.read = m.read.Add(mapsEvery)
	maps, err := procmem.ReadMaps(m.pid)
	if err != nil || equalMaps(maps, m.maps) {
		return false
	}
	m.maps, m.pcre = maps, nil
	m.unwinder.SetMaps(maps)
	m.forget()
	return true
}

// forget drops what is known of files that are no longer mapped in that place.
func (m *modules) forget() {
	for start, p := range m.mappings {
		if here, ok := m.maps.Find(start); !ok || here != p.Mapping {
			delete(m.mappings, start)
		}
	}
}

func equalMaps(a, b procmem.Maps) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// known says that an address is mapped, after a look at the mappings as they
// are now if need be.
func (m *modules) known(addr uint64) bool {
	return m.holds(addr) || addr != 0 && m.refresh() && m.holds(addr)
}

func (m *modules) holds(addr uint64) bool {
	_, ok := m.maps.Find(addr)
	return ok
}

// isCode says that an address lies in code, as far as the mappings tell that
// were read last.
func (m *modules) isCode(addr uint64) bool {
	x, ok := m.maps.Find(addr)
	return ok && x.Exec
}

// frame names the native code at an address.
func (m *modules) frame(addr uint64) stack.Frame {
	p, ok := m.unwinder.Locate(addr)
	switch {
	case ok && p.Mapping.Anonymous() && m.hasPCRE():
		return stack.Frame{Kind: stack.PCRE, Function: "[pcre-jit]", Address: addr}
	case !ok || p.Mapping.Anonymous():
		return stack.Frame{Kind: stack.Unknown, Function: "[unknown]", Address: addr}
	}
	return stack.Frame{Kind: stack.Native, Address: addr, Mapping: m.mapping(p), Function: functionName(p, addr)}
}

// hasPCRE says whether code made at run time can be PCRE's, as a library of its
// own or within the program, which then exports its functions as nginx does.
func (m *modules) hasPCRE() bool {
	if m.pcre != nil {
		return *m.pcre
	}
	found := slices.ContainsFunc(m.maps, func(x procmem.Mapping) bool {
		return x.Exec && strings.HasPrefix(path.Base(x.Path), "libpcre")
	})
	for _, name := range []string{"pcre2_match_8", "pcre_exec"} {
		if !found {
			_, _, found = m.cache.ProgramSymbol(m.pid, m.maps, name)
		}
	}
	m.pcre = &found
	return found
}

func functionName(p unwind.Place, addr uint64) string {
	if p.Image != nil {
		return p.Image.Name(p.Vaddr)
	}
	return path.Base(p.Mapping.Path) + "+0x" + strconv.FormatUint(addr-p.Mapping.Start+p.Mapping.Offset, 16)
}

// mapping returns the one description that all frames of a mapping share.
func (m *modules) mapping(p unwind.Place) *stack.Mapping {
	x := p.Mapping
	if known := m.mappings[x.Start]; known.told != nil && known.Mapping == x {
		return known.told
	}
	told := &stack.Mapping{Start: x.Start, Limit: x.End, Offset: x.Offset, Path: x.Path}
	if p.Image != nil {
		told.BuildID = p.Image.BuildID()
	}
	m.mappings[x.Start] = placed{x, told}
	return told
}
