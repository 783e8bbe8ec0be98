package flamegraph

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/spinguard/spinguard/profiler/stack"
)

// speedscopeSchema is the address that the file format asks for. It names the
// format; nothing loads it.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"`
}

// speedscopeUnits are the units that the format knows, by pprof's names.
var speedscopeUnits = map[string]string{
	"nanoseconds": "nanoseconds", "microseconds": "microseconds", "milliseconds": "milliseconds",
	"seconds": "seconds", "bytes": "bytes",
}

// WriteSpeedscope writes speedscope's JSON: one sampled profile, or for a
// difference two, the base second. It is written piece by piece, so a big
// profile needs no big buffer.
func (p *Profile) WriteSpeedscope(w io.Writer) error {
	out := newOutput(w)
	s := speedscopeWriter{p: p, out: out}
	s.raw(`{"$schema":`).value(speedscopeSchema).raw(`,"exporter":"spinguard","name":`).value(clean(p.Name))
	s.raw(`,"activeProfileIndex":0,"shared":{"frames":[`)
	for i, f := range p.frames {
		s.comma(i).value(frameForSpeedscope(f))
	}
	s.raw(`]},"profiles":[`)
	s.profile(clean(p.Name), false)
	if p.diff {
		s.raw(",").profile("base of "+clean(p.Name), true)
	}
	// The format has no place for an account, but allows for more fields.
	s.raw(`],"comments":`).value(append([]string{}, p.Account.comments()...)).raw("}\n")
	if s.err != nil {
		return s.err
	}
	return out.Flush()
}

func frameForSpeedscope(f Frame) speedscopeFrame {
	file, line := f.Place, int64(0)
	if f.Kind == stack.Lua || f.Kind == stack.Trace {
		file, line = cutLineNumber(f.Place)
	}
	if file == "" {
		file = f.Image
	}
	if file == "" {
		file = mappingOf[f.Kind]
	}
	return speedscopeFrame{Name: f.Label(), File: file, Line: line}
}

type speedscopeWriter struct {
	p   *Profile
	out output
	err error
}

func (s *speedscopeWriter) raw(text string) *speedscopeWriter {
	s.out.text(text)
	return s
}

func (s *speedscopeWriter) comma(i int) *speedscopeWriter {
	if i > 0 {
		s.out.text(",")
	}
	return s
}

func (s *speedscopeWriter) value(v any) *speedscopeWriter {
	text, err := json.Marshal(v)
	if err != nil && s.err == nil {
		s.err = err
	}
	s.out.bytes(text)
	return s
}

// profile writes the new samples, or those of the base.
func (s *speedscopeWriter) profile(name string, base bool) {
	unit, ok := speedscopeUnits[s.p.Unit]
	if !ok {
		unit = "none"
	}
	end := s.p.total
	if base {
		end = s.p.baseSum
	}
	s.raw(`{"type":"sampled","name":`).value(name).raw(`,"unit":`).value(unit)
	s.raw(`,"startValue":0,"endValue":` + strconv.FormatInt(end, 10) + `,"samples":[`)
	first := true
	s.each(base, func(ids []uint32, _ int64) {
		s.separate(&first).raw("[")
		for i, id := range ids {
			s.comma(i).raw(strconv.FormatUint(uint64(id), 10))
		}
		s.raw("]")
	})
	s.raw(`],"weights":[`)
	first = true
	s.each(base, func(_ []uint32, v int64) { s.separate(&first).raw(strconv.FormatInt(v, 10)) })
	s.raw("]}")
}

func (s *speedscopeWriter) separate(first *bool) *speedscopeWriter {
	if !*first {
		s.out.text(",")
	}
	*first = false
	return s
}

func (s *speedscopeWriter) each(base bool, f func(ids []uint32, v int64)) {
	s.p.eachStack(func(ids []uint32, value, old int64) {
		if base {
			value = old
		}
		if value > 0 {
			f(ids, value)
		}
	})
}
