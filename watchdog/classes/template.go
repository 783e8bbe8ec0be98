// Package classes counts CPU time by class of request, and by request. It is
// plain bookkeeping: no clock, no I/O. One goroutine uses a value of it.
package classes

import "strings"

// Bounds of a route template: paths come from clients.
const (
	maxSegments = 12
	maxSegment  = 64
)

// Template turns a path into a route template: what names one thing among many
// (numbers, UUIDs, long hexadecimal words and such) becomes "*", and the tail of
// a very long path "**".
func Template(path string) string {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	if len(segments) > maxSegments {
		segments = append(segments[:maxSegments], "**")
	}
	for i, s := range segments {
		if s != "**" && variable(s) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// variable says that a segment names one of many: it holds as many digits as a
// word does not, or it is too long for a word.
func variable(s string) bool {
	if len(s) > maxSegment {
		return true
	}
	digits, hex := 0, true
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case (r < 'a' || r > 'f') && (r < 'A' || r > 'F') && r != '-':
			hex = false
		}
	}
	return digits > 0 && (digits == len(s) || len(s) > 3 && 2*digits >= len(s) || hex && len(s) >= 6 || digits >= 4)
}
