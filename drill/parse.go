package drill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

const caseFile = "case.yaml"

// A case is a page of text; whatever is bigger is some other file.
const caseFileMax = 256 << 10

// LoadCase reads and checks dir/case.yaml. Errors name the file and the line.
func LoadCase(dir string) (*Case, error) {
	name := filepath.Join(dir, caseFile)
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("case folder: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, caseFileMax+1))
	if err != nil {
		return nil, fmt.Errorf("case folder: %w", err)
	}
	return ParseCase(name, data)
}

// ParseCase reads and checks a case.yaml. name is used in errors only.
func ParseCase(name string, data []byte) (*Case, error) {
	if len(data) > caseFileMax {
		return nil, fmt.Errorf("%s: more than %d bytes, not a case", name, caseFileMax)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("%s: %s", name, plain(err))
	}
	var c Case
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: empty", name)
		}
		return nil, fmt.Errorf("%s: %s", name, plain(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document", name)
	}
	if p := check(&c); p != nil {
		return nil, fmt.Errorf("%s:%d: %s: %s", name, lineOf(&root, p.key), p.key, p.text)
	}
	defaults(&c)
	return &c, nil
}

func defaults(c *Case) {
	for i := range c.Trigger {
		s := &c.Trigger[i]
		s.BodyRepeat, s.Count, s.Parallel = max(s.BodyRepeat, 1), max(s.Count, 1), max(s.Parallel, 1)
		if s.TimeoutMS == 0 {
			s.TimeoutMS = 1000
		}
	}
}

var inType = regexp.MustCompile(` in type [\w.]+`)

// plain turns the YAML library's errors into one line without Go types.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	text = inType.ReplaceAllString(text, " among the keys of a case")
	return strings.ReplaceAll(text, "\n  ", "; ")
}

// lineOf returns the line of a dotted key such as "expect.heal" or
// "trigger.2.count", or of its nearest parent that exists.
func lineOf(root *yaml.Node, key string) int {
	n, line := root, 1
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for part := range strings.SplitSeq(key, ".") {
		if n = childOf(n, part); n == nil {
			return line
		}
		line = n.Line
	}
	return line
}

func childOf(n *yaml.Node, part string) *yaml.Node {
	if n.Kind == yaml.SequenceNode {
		for i, c := range n.Content {
			if fmt.Sprint(i+1) == part {
				return c
			}
		}
		return nil
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == part {
			return n.Content[i+1]
		}
	}
	return nil
}
