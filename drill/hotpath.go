package drill

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"
)

// profileMax bounds what is read of the profile of an incident.
const profileMax = 64 << 20

// hotShare is the least share of the samples that makes a line part of the hot
// path.
const hotShare = 0.02

// frameShares returns, for every "function file:line" in the profile of an
// incident, the share of the samples in whose stacks it occurs. A loop that
// spans several lines shows each of them in some samples only.
func frameShares(dir string) (map[string]float64, error) {
	data, err := readWhole(filepath.Join(dir, "profile.pb.gz"), profileMax)
	if err != nil {
		return nil, err
	}
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("profile.pb.gz: %w", err)
	}
	counts, total := map[string]float64{}, 0.0
	for _, s := range p.Sample {
		if len(s.Value) == 0 {
			continue
		}
		n := float64(s.Value[0])
		total += n
		for name := range names(s) {
			counts[name] += n
		}
	}
	for name := range counts {
		counts[name] /= max(total, 1)
	}
	return counts, nil
}

// names returns the frames of one sample, each once.
func names(s *profile.Sample) map[string]bool {
	out := map[string]bool{}
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			if line.Function != nil {
				out[fmt.Sprintf("%s %s:%d", line.Function.Name, path.Base(line.Function.Filename), line.Line)] = true
			}
		}
	}
	return out
}

// hasPlace says whether text holds part, and not only as the beginning of a
// longer line number: "wrr.lua:1" is not in "wrr.lua:12".
func hasPlace(text, part string) bool {
	for part != "" {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
		if !digit(part[len(part)-1:]) || !digit(text) {
			return true
		}
	}
	return true
}

func digit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// inProfile says whether part occurs in enough of the samples.
func inProfile(shares map[string]float64, part string) bool {
	sum := 0.0
	for name, share := range shares {
		if hasPlace(name, part) {
			sum += share
		}
	}
	return sum >= hotShare
}

// readWhole reads a file that is at most so long.
func readWhole(file string, most int64) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if st.Size() > most {
		return nil, fmt.Errorf("%s: %d bytes, more than %d", filepath.Base(file), st.Size(), most)
	}
	return os.ReadFile(file)
}
