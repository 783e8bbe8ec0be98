package profiler

import (
	"strings"
)

// maxReasons bounds the different reasons that one profile keeps apart.
const maxReasons = 64

// reasonKey makes a short key of a sentence that says why something was lost
// or cut, so that samples can be counted by it: "frame 7: no rule for
// nginx+0x4a210" becomes "no_rule".
func reasonKey(reason string) string {
	if rest, ok := strings.CutPrefix(reason, "frame "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			reason = after
		}
	}
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(reason), notLetter) {
		if len(words) == 4 || len(words) > 0 && (w == "for" || w == "at" || w == "of" || w == "in") {
			break
		}
		words = append(words, w)
	}
	if len(words) == 0 {
		return "unknown"
	}
	return strings.Join(words, "_")
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// tally counts by reason; beyond maxReasons all others count as "other".
type tally map[string]uint64

func (t tally) add(key string, n uint64) {
	if _, known := t[key]; !known && len(t) >= maxReasons {
		key = "other"
	}
	t[key] += n
}

func (t tally) sum() uint64 {
	var n uint64
	for _, v := range t {
		n += v
	}
	return n
}
