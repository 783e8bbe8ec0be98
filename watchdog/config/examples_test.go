package config

import (
	"os"
	"strings"
	"testing"
)

func TestExamplesOfCulprits(t *testing.T) {
	text, err := os.ReadFile("../../docs/culprits.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) != 3 {
		t.Errorf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		example, _, _ := strings.Cut(b, "```")
		if c, err := Parse([]byte(example)); err != nil || len(c.Culprits) == 0 {
			t.Errorf("%v in\n%s", err, example)
		}
	}
}
