package flamegraph

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/pprof/profile"
)

// convertPprof handles the case that everything is pprof: then all of the
// profile is kept, with its addresses, build ids and sample types, which a
// Profile does not have. done is false when an input is of another kind.
func convertPprof(in, base, out string) (s Summary, done bool, err error) {
	p, err := loadPprof(in)
	if p == nil || err != nil {
		return Summary{}, err != nil, err
	}
	if base != "" {
		old, err := loadPprof(base)
		if old == nil || err != nil {
			return Summary{}, err != nil, err
		}
		p, err = subtract(p, old)
		if err != nil {
			return Summary{}, true, fmt.Errorf("difference of %s and %s: %w", in, base, err)
		}
	}
	shown, err := FromPprof(p, filepath.Base(in), "")
	if err != nil {
		return Summary{}, true, err
	}
	s = shown.summary(out, pprofEnding)
	s.Bytes, err = writeWhole(out, func(w io.Writer) error { return p.Write(w) })
	return s, true, err
}

// loadPprof returns nil and no error when the file is folded text.
func loadPprof(path string) (*profile.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	in, text, closer, err := open(f, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer closer()
	if text {
		return nil, nil
	}
	return parsePprof(in, filepath.Base(path))
}

// subtract merges two profiles as pprof's -diff_base does: the samples of the
// base are negative and carry a label.
func subtract(now, base *profile.Profile) (*profile.Profile, error) {
	base.Scale(-1)
	base.SetLabel(baseLabel, []string{"true"})
	comments := now.Comments
	p, err := profile.Merge([]*profile.Profile{now, base})
	if err != nil {
		return nil, err
	}
	p.Comments = comments // the account is that of the profile, not of its base
	return p, nil
}
