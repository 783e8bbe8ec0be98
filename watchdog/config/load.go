package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// Configurations larger than this are no configurations.
const maxSize = 1 << 20

// Load reads and checks the file at path. Errors name the file, the line where
// there is one, and what is allowed.
func Load(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxSize {
		return Config{}, fmt.Errorf("configuration %s: over %d bytes", path, maxSize)
	}
	c, err := Parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse reads YAML over the defaults and checks the result.
func Parse(text []byte) (Config, error) {
	c := Default()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, yamlError(err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("more than one YAML document; keep the first")
	}
	var root yaml.Node
	// The text was decoded above, so this can't fail; it only finds the lines.
	_ = yaml.Unmarshal(text, &root)
	if err := c.check(); err != nil {
		return Config{}, located(err, &root)
	}
	return c, nil
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type config\.\w+`)
	wrongType  = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: (`.*`))? into (\\S+)")
)

// wanted are Go's types in words.
var wanted = map[string]string{
	"time.Duration": "a duration such as 300ms", "int": "a whole number", "int64": "a whole number", "float64": "a number",
	"bool": "true or false", "string": "a text",
}

// wrong says in words that a value is of another type than its key asks for.
func wrong(text string) string {
	m := wrongType.FindStringSubmatch(text)
	value := cmp.Or(m[2], map[string]string{"seq": "a list", "map": "a map of keys"}[m[1]], "this")
	want, known := wanted[m[3]]
	switch {
	case known:
	case strings.HasPrefix(m[3], "[]"):
		want = "a list"
	default:
		want = "a map of keys"
	}
	return value + " is not " + want
}

// yamlError drops the library's prefix and the Go type names from its texts.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	text = unknownKey.ReplaceAllString(text, "$1: no such key here")
	text = wrongType.ReplaceAllStringFunc(text, wrong)
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return errors.New(strings.Join(lines, "; "))
}

// fieldError says which key is wrong, as a path such as "sampling.rate".
type fieldError struct{ key, text string }

func (e *fieldError) Error() string { return e.key + ": " + e.text }

// located adds the line of the key to the error, if the text has that key.
func located(err error, root *yaml.Node) error {
	var f *fieldError
	if !errors.As(err, &f) {
		return err
	}
	if line := lineOf(root, strings.Split(f.key, ".")); line > 0 {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}

func lineOf(n *yaml.Node, path []string) int {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind != yaml.MappingNode || len(path) == 0 {
		return 0
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != path[0] {
			continue
		}
		if below := lineOf(n.Content[i+1], path[1:]); below > 0 {
			return below
		}
		return n.Content[i].Line
	}
	return 0
}
