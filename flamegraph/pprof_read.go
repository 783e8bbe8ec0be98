package flamegraph

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/profiler/stack"
)

// baseLabel marks the samples of the base in a pprof difference.
const baseLabel = "pprof::base"

// FromPprof reads a parsed pprof profile. sampleType names the column to show;
// empty takes cpu nanoseconds, else the profile's default, else the last one.
func FromPprof(in *profile.Profile, name, sampleType string) (*Profile, error) {
	r, err := newPprofReader(in, name, sampleType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.frames = make(map[*profile.Location][]uint32)
	for _, s := range in.Sample {
		if err := r.sample(s, s.Value[r.column]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r.b.finish(), nil
}

// newPprofReader takes what a profile says of itself.
func newPprofReader(in *profile.Profile, name, sampleType string) (*pprofReader, error) {
	column, err := chooseType(in, sampleType)
	if err != nil {
		return nil, err
	}
	r := &pprofReader{b: newBuilder(name), column: column}
	p := r.b.p
	p.Type, p.Unit = clean(in.SampleType[column].Type), clean(in.SampleType[column].Unit)
	p.Duration = time.Duration(in.DurationNanos)
	if in.TimeNanos != 0 {
		p.Start = time.Unix(0, in.TimeNanos).UTC()
	}
	p.Account = readAccount(in.Comments)
	return r, nil
}

func chooseType(in *profile.Profile, want string) (int, error) {
	types := in.SampleType
	if len(types) == 0 {
		return 0, fmt.Errorf("pprof: no sample type")
	}
	if want == "" {
		want = in.DefaultSampleType
		if i := slices.IndexFunc(types, isCPU); i >= 0 {
			return i, nil
		}
	}
	var names []string
	for i, t := range types {
		if t.Type == want {
			return i, nil
		}
		names = append(names, t.Type)
	}
	if want != "" && want != in.DefaultSampleType {
		return 0, fmt.Errorf("sample type %q: not in the profile, which has %q", want, names)
	}
	return len(types) - 1, nil
}

func isCPU(t *profile.ValueType) bool { return t.Type == "cpu" && t.Unit == "nanoseconds" }

type pprofReader struct {
	b      *builder
	column int                            // of the values shown
	frames map[*profile.Location][]uint32 // root first
	ids    []uint32
	labels []Label
}

func (r *pprofReader) sample(s *profile.Sample, value int64) error {
	r.ids = r.ids[:0]
	for i := len(s.Location) - 1; i >= 0; i-- {
		loc := s.Location[i]
		ids, ok := r.frames[loc]
		if !ok {
			ids = r.location(loc)
			r.frames[loc] = ids
		}
		r.ids = append(r.ids, ids...)
	}
	r.takeLabels(s)
	return r.b.add(r.ids, r.b.set(r.labels), value, false)
}

// takeLabels collects a sample's labels, but for the mark of a base: such
// samples have negative values, and add goes by these.
func (r *pprofReader) takeLabels(s *profile.Sample) {
	r.labels = r.labels[:0]
	for key, values := range s.Label {
		if key == baseLabel {
			continue
		}
		for _, v := range values {
			r.labels = append(r.labels, Label{clean(key), clean(v)})
		}
	}
	for key, values := range s.NumLabel {
		for _, v := range values {
			r.labels = append(r.labels, Label{clean(key), strconv.FormatInt(v, 10)})
		}
	}
}

// location returns the frames of a location, root first: pprof lists inlined
// functions leaf first.
func (r *pprofReader) location(loc *profile.Location) []uint32 {
	file := ""
	if loc.Mapping != nil {
		file = loc.Mapping.File
	}
	if len(loc.Line) == 0 {
		return []uint32{r.b.frame(namelessFrame(loc, file))}
	}
	ids := make([]uint32, 0, len(loc.Line))
	for _, line := range slices.Backward(loc.Line) {
		ids = append(ids, r.b.frame(frameOfLine(line, file)))
	}
	return ids
}

func frameOfLine(line profile.Line, file string) Frame {
	if line.Function == nil {
		return Frame{Name: "[unknown]"}
	}
	fn := line.Function
	f := Frame{Name: fn.Name, Place: fn.Filename, Kind: kindOfMapping(file, true), Image: imageName(file)}
	if f.Name == "[truncated]" {
		return truncatedFrame
	}
	if f.Place != "" && line.Line > 0 && (f.Kind == stack.Lua || f.Kind == stack.Trace) {
		f.Place += ":" + strconv.FormatInt(line.Line, 10)
	}
	return f
}

// namelessFrame stands for an address without a function: its image and the
// address within it, which is the same in every run.
func namelessFrame(loc *profile.Location, file string) Frame {
	f := Frame{Name: "[unknown]", Kind: kindOfMapping(file, false), Image: imageName(file)}
	switch {
	case f.Image != "":
		f.Name = fmt.Sprintf("%s+%#x", f.Image, loc.Address-loc.Mapping.Start+loc.Mapping.Offset)
	case f.Kind == stack.Kernel && loc.Address != 0:
		f.Name = fmt.Sprintf("[kernel]+%#x", loc.Address)
	}
	return f
}
