package flamegraph

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the longest name kept, in bytes.
const maxText = 4096

// clean makes a foreign name safe to show: valid UTF-8, no control or
// direction-changing characters, at most maxText bytes.
func clean(s string) string {
	if printable(s) && len(s) <= maxText {
		return s
	}
	length := len(s)
	s = strings.ToValidUTF8(cutBytes(s, maxText), "\uFFFD")
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			b.WriteByte(' ')
		case shown(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\x%02x`, r)
		}
	}
	if length > maxText {
		fmt.Fprintf(&b, "… (%d bytes)", length)
	}
	return b.String()
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// shown tells whether a character may stand in the output as it is. Format
// characters (Cf) include those that reverse the direction of the text.
func shown(r rune) bool {
	return unicode.IsGraphic(r) && r != 0xFFFE && r != 0xFFFF
}

// cutBytes returns at most n bytes of s, not ending inside a character.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// fit cuts a label to so many columns of a monospaced font and marks the cut;
// fewer than three columns give nothing.
func fit(s string, columns int) string {
	if columns < 3 {
		return ""
	}
	used := 0
	for i, r := range s {
		used += width(r)
		if used > columns {
			return trimColumns(s[:i], columns-2) + ".."
		}
	}
	return s
}

func trimColumns(s string, columns int) string {
	used := 0
	for i, r := range s {
		if used += width(r); used > columns {
			return s[:i]
		}
	}
	return s
}

// width is the number of columns a character takes: East Asian ones take two.
func width(r rune) int {
	if r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300) {
		return 2
	}
	return 1
}

// FormatValue renders a value of a unit for people: "1.23 s", "12,345 samples".
func FormatValue(v int64, unit string) string {
	switch unit {
	case "nanoseconds":
		return formatScaled(float64(v), []string{"ns", "µs", "ms", "s"}, 1000)
	case "microseconds":
		return formatScaled(float64(v), []string{"µs", "ms", "s"}, 1000)
	case "milliseconds":
		return formatScaled(float64(v), []string{"ms", "s"}, 1000)
	case "bytes":
		return formatScaled(float64(v), []string{"B", "KiB", "MiB", "GiB", "TiB"}, 1024)
	case "count", "":
		return plural(v, "sample")
	}
	return thousands(v) + " " + clean(unit)
}

func formatScaled(v float64, units []string, step float64) string {
	i := 0
	for (v >= step || v <= -step) && i < len(units)-1 {
		v /= step
		i++
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + units[i]
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}

// percent renders a share of one, "12.34 %".
func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 2, 64) + " %"
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
