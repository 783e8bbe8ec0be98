// Package goroutines reads what the goroutines of a Go proxy do, from its own
// pprof endpoint.
package goroutines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Group is a number of goroutines with the same stack.
type Group struct {
	Count  int
	Frames []string // leaf first: "main.spin (main.go:12)"
}

// Bounds of what is read.
const (
	maxText   = 8 << 20
	maxGroups = 2000
	maxFrames = 64
)

// Parse reads the text form (debug=1) of the goroutine profile. Groups come in
// its order: most goroutines first.
func Parse(r io.Reader) ([]Group, error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxText))
	lines.Buffer(nil, 256<<10)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "goroutine profile: total ") {
		return nil, errors.Join(errors.New("goroutine profile: its first line is missing"), lines.Err())
	}
	var groups []Group
	for lines.Scan() && len(groups) < maxGroups {
		text := lines.Text()
		if frame, ok := strings.CutPrefix(text, "#\t"); ok && len(groups) > 0 {
			if g := &groups[len(groups)-1]; len(g.Frames) < maxFrames {
				g.Frames = append(g.Frames, parseFrame(frame))
			}
			continue
		}
		count, rest, ok := strings.Cut(text, " @ ")
		if n, err := strconv.Atoi(count); ok && err == nil && n > 0 && rest != "" {
			groups = append(groups, Group{Count: n})
		}
	}
	if err := lines.Err(); err != nil {
		return groups, fmt.Errorf("goroutine profile: %w", err)
	}
	return groups, nil
}

// parseFrame reads "0x4a1b2c\tmain.spin+0x2c\t/src/main.go:12".
func parseFrame(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == '\t' })
	if len(fields) < 2 {
		return strings.TrimSpace(text)
	}
	name := fields[1]
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		name = name[:i]
	}
	if len(fields) < 3 {
		return name
	}
	place := strings.TrimSpace(fields[2])
	return name + " (" + place[strings.LastIndex(place, "/")+1:] + ")"
}

// Text is the group as one line: "12 x main.spin (main.go:12) < main.main (main.go:7)".
func (g Group) Text() string {
	return fmt.Sprintf("%d x %s", g.Count, strings.Join(g.Frames[:min(6, len(g.Frames))], " < "))
}
