package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/profiler/stack"
)

// pseudoMappings carry the kind of a frame through pprof, see
// docs/architecture.md.
var pseudoMappings = map[stack.Kind]string{
	stack.Lua: "[lua]", stack.Trace: "[trace]", stack.Builtin: "[builtin]", stack.VM: "[vm]",
	stack.PCRE: "[pcre]", stack.Kernel: "[kernel]", stack.Unknown: "[unknown]",
}

// Profile returns the profile of all that was added. The same input in any
// order gives the same profile. It is checked before it is returned.
func (b *Builder) Profile() (*profile.Profile, error) {
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType:    &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:        int64(b.period),
		DurationNanos: int64(b.duration),
		Comments:      b.commentLines(),
	}
	if !b.start.IsZero() {
		p.TimeNanos = b.start.UnixNano()
	}
	p.DefaultSampleType = "cpu"
	w := writer{profile: p, builder: b, functions: map[frameKey]*profile.Function{}, mappings: map[stack.Mapping]*profile.Mapping{}}
	w.write()
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("profile of %d samples: %v", b.shown, err)
	}
	return p, nil
}

// writer lays out one profile.
type writer struct {
	profile   *profile.Profile
	builder   *Builder
	locations []*profile.Location
	functions map[frameKey]*profile.Function
	mappings  map[stack.Mapping]*profile.Mapping
}

func (w *writer) write() {
	rank := w.rankFrames()
	sorted := w.sorted(rank)
	w.program(sorted)
	for _, e := range sorted {
		s := &profile.Sample{Value: []int64{e.count, int64(e.weight)}}
		for _, id := range e.frames {
			s.Location = append(s.Location, w.location(id))
		}
		e.labels.set(s)
		w.profile.Sample = append(w.profile.Sample, s)
	}
}

// program writes the mapping of the program first, which pprof takes for that
// of the profile: the one that most stacks begin in.
func (w *writer) program(entries []*entry) {
	samples := map[stack.Mapping]int64{}
	var most stack.Mapping
	for _, e := range entries {
		for i := len(e.frames) - 1; i >= 0; i-- {
			f := &w.builder.list[e.frames[i]]
			if f.Kind != stack.Native || f.Mapping == nil || f.Mapping.Path == "" {
				continue
			}
			samples[*f.Mapping] += e.count
			if samples[*f.Mapping] > samples[most] {
				most = *f.Mapping
			}
			break
		}
	}
	if most.Path != "" {
		w.mapping(most)
	}
}

// rankFrames gives each frame its place in the order of names, so that the
// order of samples does not depend on the order in which they were added.
func (w *writer) rankFrames() []int {
	list := w.builder.list
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareFrames(&list[a], &list[b]) })
	rank := make([]int, len(list))
	for place, i := range order {
		rank[i] = place
	}
	w.locations = make([]*profile.Location, len(list))
	return rank
}

func compareFrames(a, b *stack.Frame) int {
	if c := cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.StartLine, b.StartLine), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Address, b.Address)); c != 0 {
		return c
	}
	ma, mb := mappingOf(a), mappingOf(b)
	return cmp.Or(cmp.Compare(ma.Path, mb.Path), cmp.Compare(ma.BuildID, mb.BuildID), cmp.Compare(ma.Start, mb.Start),
		cmp.Compare(ma.Limit, mb.Limit), cmp.Compare(ma.Offset, mb.Offset))
}

// sorted returns the entries from root to leaf in the order of their frames,
// then of their labels.
func (w *writer) sorted(rank []int) []*entry {
	all := make([]*entry, 0, w.builder.count)
	for _, list := range w.builder.entries {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		for i, j := len(a.frames)-1, len(b.frames)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
			if c := cmp.Compare(rank[a.frames[i]], rank[b.frames[j]]); c != 0 {
				return c
			}
		}
		if c := cmp.Compare(len(a.frames), len(b.frames)); c != 0 {
			return c
		}
		pa, pb := a.labels.pairs(), b.labels.pairs()
		for i := range pa {
			if c := cmp.Compare(pa[i][1], pb[i][1]); c != 0 {
				return c
			}
		}
		return 0
	})
	return all
}

func (w *writer) location(id uint32) *profile.Location {
	if l := w.locations[id]; l != nil {
		return l
	}
	f := &w.builder.list[id]
	l := &profile.Location{
		ID: uint64(len(w.profile.Location)) + 1, Mapping: w.mapping(mappingOf(f)), Address: f.Address,
		Line: []profile.Line{{Function: w.function(f), Line: int64(f.Line)}},
	}
	w.locations[id] = l
	w.profile.Location = append(w.profile.Location, l)
	return l
}

func (w *writer) function(f *stack.Frame) *profile.Function {
	key := frameKey{kind: f.Kind, function: f.Function, file: f.File, startLine: f.StartLine}
	fn := w.functions[key]
	if fn == nil {
		fn = &profile.Function{
			ID: uint64(len(w.profile.Function)) + 1, Name: f.Function, SystemName: f.Function,
			Filename: f.File, StartLine: int64(f.StartLine),
		}
		w.functions[key] = fn
		w.profile.Function = append(w.profile.Function, fn)
	}
	return fn
}

func (w *writer) mapping(m stack.Mapping) *profile.Mapping {
	pm := w.mappings[m]
	if pm == nil {
		// HasFunctions tells pprof not to look for better names by itself.
		pm = &profile.Mapping{
			ID: uint64(len(w.profile.Mapping)) + 1, Start: m.Start, Limit: m.Limit, Offset: m.Offset,
			File: m.Path, BuildID: m.BuildID, HasFunctions: true,
		}
		pm.HasFilenames = m.Path == "[lua]" || m.Path == "[trace]"
		pm.HasLineNumbers = pm.HasFilenames
		w.mappings[m] = pm
		w.profile.Mapping = append(w.profile.Mapping, pm)
	}
	return pm
}

// mappingOf returns the mapping that a frame is written under.
func mappingOf(f *stack.Frame) stack.Mapping {
	if f.Kind == stack.Native && f.Mapping != nil && f.Mapping.Path != "" {
		return *f.Mapping
	}
	if name, ok := pseudoMappings[f.Kind]; ok {
		return stack.Mapping{Path: name}
	}
	return stack.Mapping{Path: pseudoMappings[stack.Unknown]}
}

// unnamed says that a frame shows only where its code lies.
func unnamed(f stack.Frame) bool {
	return f.Function == "" || f.Kind == stack.Unknown || strings.Contains(f.Function, "+0x")
}

// commentLines lists what the profile says about itself, sorted by key.
func (b *Builder) commentLines() []string {
	taken, shown, lost, truncated := b.Counts()
	all := map[string]string{
		"samples_taken":     strconv.FormatUint(taken, 10),
		"samples_shown":     strconv.FormatUint(shown, 10),
		"samples_lost":      strconv.FormatUint(lost, 10),
		"samples_truncated": strconv.FormatUint(truncated, 10),
		"frames_shown":      strconv.FormatUint(b.framesAll, 10),
		"frames_unnamed":    strconv.FormatUint(b.unnamed, 10),
	}
	for reason, n := range b.lost {
		all["lost_"+reason] = strconv.FormatUint(n, 10)
	}
	for reason, n := range b.truncated {
		all["truncated_"+reason] = strconv.FormatUint(n, 10)
	}
	for k, v := range b.comments {
		all[k] = v
	}
	var lines []string
	for k, v := range all {
		lines = append(lines, k+"="+strings.ReplaceAll(v, "\n", " "))
	}
	slices.Sort(lines)
	return lines
}
