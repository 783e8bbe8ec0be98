package export

import (
	"fmt"

	"github.com/google/pprof/profile"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
)

// dictionary builds the shared tables of a request. Entry 0 of each is empty,
// as the protocol wants it: index 0 means that there is none.
type dictionary struct {
	out        *otlp.ProfilesDictionary
	strings    map[string]int32
	attributes map[string]int32
	stacks     map[string]int32
	mappings   map[*profile.Mapping]int32
	functions  map[*profile.Function]int32
	locations  map[*profile.Location]int32
}

func newDictionary() *dictionary {
	return &dictionary{
		out: &otlp.ProfilesDictionary{
			MappingTable: []*otlp.Mapping{{}}, LocationTable: []*otlp.Location{{}}, FunctionTable: []*otlp.Function{{}},
			LinkTable:   []*otlp.Link{{TraceId: make([]byte, 16), SpanId: make([]byte, 8)}},
			StringTable: []string{""}, AttributeTable: []*otlp.KeyValueAndUnit{{}}, StackTable: []*otlp.Stack{{}},
		},
		strings: map[string]int32{"": 0}, attributes: map[string]int32{}, stacks: map[string]int32{},
		mappings: map[*profile.Mapping]int32{nil: 0}, functions: map[*profile.Function]int32{nil: 0}, locations: map[*profile.Location]int32{nil: 0},
	}
}

func (d *dictionary) str(s string) int32 {
	s = valid(s)
	i, ok := d.strings[s]
	if !ok {
		i = int32(len(d.out.StringTable))
		d.out.StringTable = append(d.out.StringTable, s)
		d.strings[s] = i
	}
	return i
}

func (d *dictionary) attribute(key string, value *common.AnyValue, unit string) int32 {
	id := fmt.Sprintf("%q %q %T %v", key, unit, value.GetValue(), value.GetValue())
	i, ok := d.attributes[id]
	if !ok {
		i = int32(len(d.out.AttributeTable))
		d.out.AttributeTable = append(d.out.AttributeTable, &otlp.KeyValueAndUnit{KeyStrindex: d.str(key), Value: value, UnitStrindex: d.str(unit)})
		d.attributes[id] = i
	}
	return i
}

// labels are the attributes of the whole profile.
func (d *dictionary) labels(labels map[string]string) (list []int32) {
	for _, key := range sortedKeys(labels) {
		list = append(list, d.attribute("spinguard."+key, text(labels[key]), ""))
	}
	return list
}

// sampleLabels takes the first value of each label: keys are unique in OTLP.
func (d *dictionary) sampleLabels(s *profile.Sample) (list []int32) {
	for _, key := range sortedKeys(s.Label) {
		if v := s.Label[key]; len(v) > 0 {
			list = append(list, d.attribute("spinguard."+key, text(v[0]), ""))
		}
	}
	for _, key := range sortedKeys(s.NumLabel) {
		v, unit := s.NumLabel[key], ""
		if u := s.NumUnit[key]; len(u) > 0 {
			unit = u[0]
		}
		if _, also := s.Label[key]; len(v) > 0 && !also {
			list = append(list, d.attribute("spinguard."+key, &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v[0]}}, unit))
		}
	}
	return list
}

func (d *dictionary) valueType(v *profile.ValueType) *otlp.ValueType {
	if v == nil {
		return nil
	}
	return &otlp.ValueType{TypeStrindex: d.str(v.Type), UnitStrindex: d.str(v.Unit)}
}

// stack takes the locations, leaf first in both formats.
func (d *dictionary) stack(list []*profile.Location) int32 {
	indices := make([]int32, len(list))
	for i, l := range list {
		indices[i] = d.location(l)
	}
	if len(indices) == 0 {
		return 0
	}
	id := fmt.Sprint(indices)
	i, ok := d.stacks[id]
	if !ok {
		i = int32(len(d.out.StackTable))
		d.out.StackTable = append(d.out.StackTable, &otlp.Stack{LocationIndices: indices})
		d.stacks[id] = i
	}
	return i
}

func (d *dictionary) location(l *profile.Location) int32 {
	i, ok := d.locations[l]
	if ok {
		return i
	}
	out := &otlp.Location{MappingIndex: d.mapping(l.Mapping), Address: l.Address, AttributeIndices: d.frameType(l)}
	for _, line := range l.Line {
		out.Lines = append(out.Lines, &otlp.Line{FunctionIndex: d.function(line.Function), Line: line.Line, Column: line.Column})
	}
	i = int32(len(d.out.LocationTable))
	d.out.LocationTable = append(d.out.LocationTable, out)
	d.locations[l] = i
	return i
}

// frameTypes translates our pseudo mappings; all others are native.
var frameTypes = map[string]string{"[lua]": "luajit", "[trace]": "luajit", "[builtin]": "luajit", "[vm]": "luajit", "[kernel]": "kernel"}

func (d *dictionary) frameType(l *profile.Location) []int32 {
	kind := "native"
	if l.Mapping == nil || l.Mapping.File == "[unknown]" {
		return nil
	}
	if k, ok := frameTypes[l.Mapping.File]; ok {
		kind = k
	}
	return []int32{d.attribute("profile.frame.type", text(kind), "")}
}

func (d *dictionary) mapping(m *profile.Mapping) int32 {
	i, ok := d.mappings[m]
	if ok {
		return i
	}
	out := &otlp.Mapping{MemoryStart: m.Start, MemoryLimit: m.Limit, FileOffset: m.Offset, FilenameStrindex: d.str(m.File)}
	if m.BuildID != "" {
		out.AttributeIndices = []int32{d.attribute("process.executable.build_id.gnu", text(m.BuildID), "")}
	}
	i = int32(len(d.out.MappingTable))
	d.out.MappingTable = append(d.out.MappingTable, out)
	d.mappings[m] = i
	return i
}

func (d *dictionary) function(f *profile.Function) int32 {
	i, ok := d.functions[f]
	if ok {
		return i
	}
	i = int32(len(d.out.FunctionTable))
	d.out.FunctionTable = append(d.out.FunctionTable, &otlp.Function{
		NameStrindex: d.str(f.Name), SystemNameStrindex: d.str(f.SystemName), FilenameStrindex: d.str(f.Filename), StartLine: f.StartLine,
	})
	d.functions[f] = i
	return i
}
