package drill

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/incident"
)

// samplesAddUp holds what the files of an incident say of its samples against
// each other: taken is shown plus lost in all of them.
func samplesAddUp(t *testing.T, folder string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, incident.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	inc, err := incident.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if inc.Samples.Taken != inc.Samples.Shown+inc.Samples.LostAll() {
		t.Errorf("%s: samples do not add up: %+v", folder, inc.Samples)
	}
	p, shown := readProfile(t, filepath.Join(folder, incident.ProfileFile))
	if p == nil {
		return // no stack was ever seen
	}
	if shown != inc.Samples.Shown || !slices.Contains(p.Comments, fmt.Sprintf("samples_taken=%d", inc.Samples.Taken)) {
		t.Errorf("%s: %d samples in the profile with %q, in the JSON %+v", folder, shown, p.Comments, inc.Samples)
	}
	svg, err := os.ReadFile(filepath.Join(folder, incident.FlameFile))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("Samples: %d taken = %d shown + %d lost", inc.Samples.Taken, inc.Samples.Shown, inc.Samples.LostAll()); !strings.Contains(strings.ReplaceAll(string(svg), ",", ""), want) {
		t.Errorf("%s: the picture does not say %q", folder, want)
	}
	for _, name := range []string{incident.BaselineFile, incident.SiblingsFile} {
		if p, shown := readProfile(t, filepath.Join(folder, name)); p != nil && !slices.Contains(p.Comments, fmt.Sprintf("samples_shown=%d", shown)) {
			t.Errorf("%s: %d samples in it, but %q", name, shown, p.Comments)
		}
	}
}

// readProfile reads a profile and counts its samples; nil if it is not there.
func readProfile(t *testing.T, path string) (*profile.Profile, int64) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	var shown int64
	for _, s := range p.Sample {
		shown += s.Value[0]
	}
	return p, shown
}
