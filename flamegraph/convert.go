package flamegraph

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Summary is what a conversion did, for a command's --json.
type Summary struct {
	Output    string `json:"output"`
	Format    string `json:"format"`
	Stacks    int    `json:"stacks"` // distinct ones read, labels included
	Total     int64  `json:"total"`  // sum of the values, in Unit
	BaseTotal int64  `json:"base_total,omitempty"`
	Unit      string `json:"unit"`
	Frames    int    `json:"frames,omitempty"`   // boxes drawn
	LeftOut   int    `json:"left_out,omitempty"` // boxes too narrow to draw
	Bytes     int64  `json:"bytes"`              // size of the output
}

const pprofEnding = ".pb.gz"

// format is one kind of output.
type format struct {
	ending string
	write  func(io.Writer, *Profile, *Summary) error
}

var formats = []format{
	{".svg", func(w io.Writer, p *Profile, s *Summary) error {
		d, err := WriteSVG(w, p, SVGOptions{})
		s.Frames, s.LeftOut = d.Frames, d.LeftOut
		return err
	}},
	{".html", func(w io.Writer, p *Profile, s *Summary) error {
		d, err := WriteHTML(w, p, HTMLOptions{})
		s.Frames, s.LeftOut = d.Frames, d.LeftOut
		return err
	}},
	{".folded", func(w io.Writer, p *Profile, _ *Summary) error { return p.WriteFolded(w) }},
	{".speedscope.json", func(w io.Writer, p *Profile, _ *Summary) error { return p.WriteSpeedscope(w) }},
	{pprofEnding, func(w io.Writer, p *Profile, _ *Summary) error { return p.WritePprof(w) }},
}

// Drawn counts the boxes of a picture.
type Drawn struct {
	Frames  int // boxes drawn
	LeftOut int // boxes too narrow to draw
}

// Endings lists the file name endings that Convert knows, sorted.
func Endings() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.ending)
	}
	slices.Sort(out)
	return out
}

// CheckOutput says what keeps Convert from writing to a file: a name whose
// ending is no format, or a folder that is not there or takes no new files.
// Who takes long to make a profile asks first.
func CheckOutput(out string) error {
	if _, err := formatOf(out); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(out), ".spinguard-*")
	if err != nil {
		return fmt.Errorf("output %q: %w", out, cause(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// cause leaves the name of a temporary file out of an error.
func cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// Convert reads the profile in and writes it to the file out, in the format
// that the ending of out names. With a base the output is the difference of
// the two. The file appears whole or not at all.
func Convert(in, base, out string) (Summary, error) {
	f, err := formatOf(out)
	if err != nil {
		return Summary{}, err
	}
	if f.ending == pprofEnding {
		if s, done, err := convertPprof(in, base, out); done {
			return s, err
		}
	}
	p, err := Load(in)
	if err != nil {
		return Summary{}, err
	}
	if base != "" {
		old, err := Load(base)
		if err != nil {
			return Summary{}, err
		}
		if p, err = Diff(old, p); err != nil {
			return Summary{}, err
		}
	}
	return p.WriteFile(out)
}

// WriteFile writes the profile to a file in the format of the name's ending.
// The file appears whole or not at all.
func (p *Profile) WriteFile(out string) (Summary, error) {
	f, err := formatOf(out)
	if err != nil {
		return Summary{}, err
	}
	s := p.summary(out, f.ending)
	s.Bytes, err = writeWhole(out, func(w io.Writer) error { return f.write(w, p, &s) })
	return s, err
}

func (p *Profile) summary(out, ending string) Summary {
	return Summary{
		Output: out, Format: strings.TrimPrefix(ending, "."), Stacks: p.Stacks(),
		Total: p.total, BaseTotal: p.baseSum, Unit: p.Unit,
	}
}

func formatOf(out string) (format, error) {
	for _, f := range formats {
		if strings.HasSuffix(out, f.ending) && filepath.Base(out) != f.ending {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("output %q: unknown ending; use one of %s", out, strings.Join(Endings(), " "))
}

// writeWhole writes to a temporary file in the same folder and renames it.
func writeWhole(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, fmt.Errorf("output %q: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return 0, err
	}
	if size, err = f.Seek(0, io.SeekCurrent); err != nil {
		return 0, err
	}
	if err = f.Chmod(0o644); err != nil {
		return 0, err
	}
	if err = f.Close(); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), path)
}
