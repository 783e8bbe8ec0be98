package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// maxCell is the width of the widest column, in characters. JSON has the whole.
const maxCell = 400

// table prints rows in columns that are as wide as their widest cell, and
// returns where the second one begins. Cells may come from the memory of a
// proxy: what a terminal would obey is replaced.
func table(w io.Writer, rows [][]string) (second int) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(shortened(cell))))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = shortened(cell)
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	if len(widths) == 0 {
		return 0
	}
	return widths[0] + 2
}

func shortened(s string) string { return printable(cut(s, maxCell)) }

// printable replaces control characters and invalid text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if n < 2 || len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// cutFront shortens a text to its last n characters: of names that begin alike.
func cutFront(s string, n int) string {
	r := []rune(s)
	if n < 2 || len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
