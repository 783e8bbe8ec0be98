package flamegraph

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/profiler/stack"
)

// WritePprof writes the profile as gzipped pprof. A difference holds the base
// as negative samples with the label pprof::base, as pprof itself does it.
func (p *Profile) WritePprof(w io.Writer) error {
	c := pprofWriter{p: p, mappings: make(map[string]*profile.Mapping)}
	c.out = &profile.Profile{
		SampleType: []*profile.ValueType{{Type: p.Type, Unit: p.Unit}},
		Comments:   p.Account.comments(),
	}
	c.out.DurationNanos = p.Duration.Nanoseconds()
	if !p.Start.IsZero() {
		c.out.TimeNanos = p.Start.UnixNano()
	}
	for _, f := range p.frames {
		c.location(f)
	}
	for _, r := range p.stacks {
		c.sample(r)
	}
	if err := c.out.CheckValid(); err != nil {
		return fmt.Errorf("pprof of %s: %w", p.Name, err)
	}
	return c.out.Write(w)
}

type pprofWriter struct {
	p        *Profile
	out      *profile.Profile
	mappings map[string]*profile.Mapping
}

// location appends the location, function and mapping of frame number n as
// number n+1: pprof counts from one.
func (c *pprofWriter) location(f Frame) {
	file, line := f.Place, int64(0)
	if f.Kind == stack.Lua || f.Kind == stack.Trace {
		file, line = cutLineNumber(f.Place)
	}
	id := uint64(len(c.out.Location) + 1)
	fn := &profile.Function{ID: id, Name: f.Name, SystemName: f.Name, Filename: file}
	c.out.Function = append(c.out.Function, fn)
	c.out.Location = append(c.out.Location, &profile.Location{
		ID: id, Mapping: c.mapping(f), Line: []profile.Line{{Function: fn, Line: line}},
	})
}

func (c *pprofWriter) mapping(f Frame) *profile.Mapping {
	name, ok := mappingOf[f.Kind]
	if !ok {
		name = f.Image
	}
	if name == "" {
		return nil
	}
	m, ok := c.mappings[name]
	if !ok {
		m = &profile.Mapping{
			ID: uint64(len(c.out.Mapping) + 1), File: name,
			HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
		}
		c.mappings[name] = m
		c.out.Mapping = append(c.out.Mapping, m)
	}
	return m
}

func (c *pprofWriter) sample(r record) {
	ids := c.p.frameIDs(r)
	s := &profile.Sample{Value: []int64{r.value}, Location: make([]*profile.Location, len(ids))}
	for i, id := range ids {
		s.Location[len(ids)-1-i] = c.out.Location[id]
	}
	labels := c.p.sets[r.set]
	if len(labels) > 0 || r.base {
		s.Label = make(map[string][]string, len(labels)+1)
	}
	for _, l := range labels {
		s.Label[l.Key] = append(s.Label[l.Key], l.Value)
	}
	if r.base {
		s.Value[0] = -r.value
		s.Label[baseLabel] = []string{"true"}
	}
	c.out.Sample = append(c.out.Sample, s)
}

// cutLineNumber splits "wrr.lua:12".
func cutLineNumber(place string) (file string, line int64) {
	i := strings.LastIndexByte(place, ':')
	if i < 0 {
		return place, 0
	}
	n, err := strconv.ParseInt(place[i+1:], 10, 64)
	if err != nil || n < 0 {
		return place, 0
	}
	return place[:i], n
}
