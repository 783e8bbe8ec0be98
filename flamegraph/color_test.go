package flamegraph

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestColoursAgree: the picture, the page and the legends say the same.
func TestColoursAgree(t *testing.T) {
	page, err := os.ReadFile("ui/src/color.js")
	if err != nil {
		t.Fatal(err)
	}
	for kind, color := range kindColors {
		if !strings.Contains(svgStyle, fmt.Sprintf("rect.k%d{fill:%s}", kind, color)) {
			t.Errorf("svg.css: %v is not %s", kind, color)
		}
		if !strings.Contains(string(page), fmt.Sprintf("%v: %q", kind, color)) {
			t.Errorf("color.js: %v is not %s", kind, color)
		}
	}
}
