package unwind

import (
	"sort"
	"sync"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

// region is one executable mapping with what is known of its image.
type region struct {
	procmem.Mapping
	once   sync.Once
	image  *symbol.Image // nil: anonymous, or cannot be opened
	bias   uint64
	tables []*cfi.Table
	goTab  *symbol.GoTable

	calls memo // which addresses are behind a call

	blobOnce           sync.Once
	blobStart, blobEnd uint64 // the LuaJIT interpreter, in the process
}

// space is the code of a process, sorted by address. It is immutable but for
// what regions load when first used.
type space struct {
	regions []*region
}

// newSpace takes over regions of the old space that did not change.
func newSpace(maps procmem.Maps, old *space) *space {
	s := &space{}
	for _, m := range maps {
		if !m.Exec {
			continue
		}
		if r := old.find(m.Start); r != nil && r.Mapping == m {
			s.regions = append(s.regions, r)
		} else {
			s.regions = append(s.regions, &region{Mapping: m})
		}
	}
	return s
}

func (s *space) find(pc uint64) *region {
	if s == nil {
		return nil
	}
	i := sort.Search(len(s.regions), func(i int) bool { return s.regions[i].End > pc })
	if i < len(s.regions) && s.regions[i].Start <= pc {
		return s.regions[i]
	}
	return nil
}

// load opens the image of a region once. A failure is remembered: the region
// counts as code without rules.
func (r *region) load(cache *symbol.Cache, pid int) {
	r.once.Do(func() {
		if r.Anonymous() {
			return
		}
		image, err := cache.Open(pid, r.Mapping)
		if err != nil {
			return
		}
		if bias, ok := image.Bias(r.Mapping); ok {
			r.image, r.bias, r.goTab = image, bias, image.GoTable()
			r.tables = image.UnwindTables()
		}
	})
}

// function returns the rules of the function that holds an address.
func (r *region) function(addr uint64) (*cfi.Function, bool) {
	for _, t := range r.tables {
		if f, ok := t.Function(addr - r.bias); ok {
			return f, true
		}
	}
	return nil, false
}
