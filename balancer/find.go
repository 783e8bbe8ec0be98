package balancer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// ErrNoCrumbs is returned for a process that does not use the library.
var ErrNoCrumbs = errors.New("no crumbs are mapped")

// Files is what a worker has mapped of the library's files.
type Files struct {
	Crumbs  procmem.Mapping // Start is 0 where there are none
	Changes procmem.Mapping // the same
	Ledger  string          // path for OpenLedger, as the agent can open it; empty where there is none
}

// ledgerName is the name that the library gives to the ledger. It counts as
// much as the magic: a ledger of random bytes is still the one to repair.
const ledgerName = "ledger"

// FindFiles looks for crumbs and ledger in the mappings of a worker, by size
// and contents. A process without them gives empty Files.
func FindFiles(maps procmem.Maps, mem procmem.Memory, pid int) Files {
	var files Files
	for _, m := range maps {
		if !m.Shared || m.Exec || m.Inode == 0 || m.Offset != 0 {
			continue
		}
		switch size := m.End - m.Start; {
		case files.Crumbs.Start == 0 && m.Write && holds(size, crumbsSize) && isCrumbs(mem, m.Start):
			files.Crumbs = m
		case files.Changes.Start == 0 && m.Write && holds(size, changesSize) && isChanges(mem, m.Start):
			files.Changes = m
		case files.Ledger == "" && !m.Write && holds(size, ledgerSize):
			files.Ledger = ledgerPath(m, pid)
		}
	}
	return files
}

// holds says whether a mapping is as large as the file, rounded up to a page.
func holds(size uint64, file uint64) bool {
	page := uint64(os.Getpagesize())
	return size == (file+page-1)/page*page
}

func isCrumbs(mem procmem.Memory, addr uint64) bool {
	var h [crumbHeader]byte
	if err := mem.ReadMemory(addr, h[:]); err != nil {
		return false
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(h[at:]) }
	return string(h[:len(crumbMagic)]) == crumbMagic && word(crumbsLayoutAt) == Layout &&
		word(crumbsHeaderSizeAt) == crumbHeader && word(crumbsSlotSizeAt) == CrumbSize &&
		word(crumbsSlotsAt) == crumbSlots
}

func isChanges(mem procmem.Memory, addr uint64) bool {
	var h [changesAreasAt + 4]byte
	if err := mem.ReadMemory(addr, h[:]); err != nil {
		return false
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(h[at:]) }
	return string(h[:len(changesMagic)]) == changesMagic && word(changesLayoutAt) == Layout &&
		word(changesAreaSizeAt) == changeArea && word(changesSlotSizeAt) == changeSlot && word(changesAreasAt) == crumbSlots
}

// ledgerPath returns the path of a mapped file that is a ledger, seen through
// the root of the worker if that is another one. Whether the file can be
// trusted is for OpenLedger to say.
func ledgerPath(m procmem.Mapping, pid int) string {
	if !strings.HasPrefix(m.Path, "/") || filepath.Base(m.Path) != ledgerName && !isLedger(m, pid) {
		return ""
	}
	root := filepath.Join("/proc", strconv.Itoa(pid), "root")
	mine, err := os.Stat("/")
	theirs, err2 := os.Stat(root + "/")
	if err == nil && err2 == nil && os.SameFile(mine, theirs) {
		return m.Path
	}
	return filepath.Join(root, m.Path)
}

// isLedger reads the magic through the mapping itself, so it also knows a
// file that was removed.
func isLedger(m procmem.Mapping, pid int) bool {
	path := fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End)
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, len(ledgerMagic))
	if _, err := f.ReadAt(magic, 0); err != nil {
		return false
	}
	return string(magic) == ledgerMagic
}

// SlotAddress returns the address, in the worker's own memory, of the slot
// that this worker has claimed. nspid is the worker's pid as it sees itself
// (see NamespacePID). Until a worker has claimed its slot, at the latest
// before its first pick, the error is ErrNoCrumbs: ask again later.
func SlotAddress(mem procmem.Memory, crumbs procmem.Mapping, nspid int) (uint64, error) {
	if crumbs.Start == 0 {
		return 0, ErrNoCrumbs
	}
	all := make([]byte, crumbsSize)
	if err := mem.ReadMemory(crumbs.Start, all); err != nil {
		return 0, fmt.Errorf("crumbs at %#x: %v", crumbs.Start, err)
	}
	found := uint64(0)
	for i := range uint64(crumbSlots) {
		at := crumbHeader + i*CrumbSize
		if binary.LittleEndian.Uint32(all[at+slotPIDAt:]) != uint32(nspid) {
			continue
		}
		if found != 0 {
			return 0, fmt.Errorf("crumbs at %#x: two slots of pid %d", crumbs.Start, nspid)
		}
		found = crumbs.Start + at
	}
	if found == 0 {
		return 0, fmt.Errorf("slot of pid %d: %w", nspid, ErrNoCrumbs)
	}
	return found, nil
}

// NamespacePID returns the pid by which a process knows itself.
func NamespacePID(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return pid
	}
	for line := range strings.Lines(string(status)) {
		if pids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(pids)
			if len(fields) == 0 {
				return pid
			}
			if inner, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
				return inner
			}
		}
	}
	return pid
}

// ReadCrumb reads the crumb of a worker from its memory. nspid as in
// SlotAddress. A slot that now belongs to another process is an error.
func ReadCrumb(mem procmem.Memory, slot uint64, nspid int) (Crumb, error) {
	var b [CrumbSize]byte
	if err := mem.ReadMemory(slot, b[:]); err != nil {
		return Crumb{}, err
	}
	c, err := ParseCrumb(b[:])
	if err == nil && c.PID != nspid {
		return Crumb{}, fmt.Errorf("slot of pid %d, not %d: %w", c.PID, nspid, ErrCrumb)
	}
	return c, err
}
