package main

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		line        string
		width, hang int
		want        string
	}{
		{"worker 3 hangs in a picker", 10, 0, "worker 3\nhangs in a\npicker"},
		{"worker 3 hangs in a picker", 0, 0, "worker 3 hangs in a picker"},
		{"  12 ms  evict worker 3: done", 15, 4, "  12 ms  evict\n    worker 3:\n    done"},
		{"a  b", 4, 0, "a  b"},
		{"reason  of a long name", 12, 8, "reason  of a\nlong name"},
		{"see /averylongpathwithoutaspace now", 10, 2, "see\n  /averylongpathwithoutaspace\n  now"},
		{"größer schöner weiter", 14, 0, "größer schöner\nweiter"},
		{"      ", 3, 0, "      "},
		{"", 10, 2, ""},
	} {
		if got := wrap(test.line, test.width, test.hang); got != test.want {
			t.Errorf("%q in %d: %q, want %q", test.line, test.width, got, test.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("  12 ms  evict worker 3: done", 15, 4)
	f.Fuzz(func(t *testing.T, line string, width, hang int) {
		line = strings.ReplaceAll(line, "\n", " ")
		hang = max(0, min(hang, 40))
		got := wrap(line, width, hang)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(line), " ") {
			t.Errorf("%q in %d became %q", line, width, got)
		}
	})
}
