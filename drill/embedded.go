package drill

import (
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

//go:embed all:scenarios
var embedded embed.FS

const casesDir = "scenarios/cases"

// caseNames returns the embedded case folders, sorted.
func caseNames() []string {
	var out []string
	dirs, _ := fs.ReadDir(embedded, casesDir)
	for _, d := range dirs {
		if d.IsDir() {
			out = append(out, d.Name())
		}
	}
	slices.Sort(out)
	return out
}

// embeddedCase reads an embedded folder as a case.
func embeddedCase(dir string) (*Scenario, error) {
	name := path.Join(dir, caseFile)
	data, err := embedded.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c, err := ParseCase(name, data)
	if err != nil {
		return nil, err
	}
	sc := gentle(&Scenario{Case: c})
	sc.files = func(run string) (string, error) { return unpack(dir, run) }
	return sc, nil
}

// unpack writes an embedded folder below the run directory, where workers of
// any user can read it.
func unpack(dir, run string) (string, error) {
	target := filepath.Join(run, "case")
	return target, unpackFS(embedded, dir, target)
}

// unpackFS writes the folder dir of a file system to target.
func unpackFS(from fs.FS, dir, target string) error {
	return fs.WalkDir(from, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.FromSlash(dir), filepath.FromSlash(name))
		if err != nil {
			return err
		}
		to := filepath.Join(target, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
