package main

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// width returns that of the terminal; 0: there is none, so nothing is fitted.
func (e env) width() int {
	if !e.terminal {
		return 0
	}
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrap breaks a line without colours at its spaces, so that it fits into width
// characters. Further lines are indented by hang, or not at all where that
// would take half of the width. A longer word stands alone; 0 is endless.
func wrap(line string, width, hang int) string {
	if width <= 0 || len([]rune(line)) <= width {
		return line
	}
	if hang*2 > width {
		hang = 0
	}
	text := strings.TrimLeft(line, " ")
	var out strings.Builder
	out.WriteString(line[:len(line)-len(text)])
	column, empty := len(line)-len(text), true
	for text != "" {
		word := text // with the spaces in front of it
		start := len(text) - len(strings.TrimLeft(text, " "))
		if i := strings.IndexByte(text[start:], ' '); i >= 0 {
			word = text[:start+i]
		}
		text = text[len(word):]
		if n := len([]rune(word)); empty || column+n <= width {
			column += n
		} else {
			word = strings.TrimLeft(word, " ")
			out.WriteString("\n" + strings.Repeat(" ", hang))
			column = hang + len([]rune(word))
		}
		empty = false
		out.WriteString(word)
	}
	return out.String()
}

// wrapLines wraps each line of a text.
func wrapLines(text string, width, hang int) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = wrap(lines[i], width, hang)
	}
	return strings.Join(lines, "\n")
}
