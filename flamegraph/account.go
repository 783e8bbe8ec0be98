package flamegraph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Account is what a profile's comments say about its own completeness: one
// key=value a line, such as samples_taken=1200 or lost_ring=3.
type Account struct {
	Taken, Shown, Lost int64  // -1 where the profile does not say
	Reasons            []Note // why samples were lost, by name: "ring" "3"
	Notes              []Note // every other key=value, in order
}

// Note is one key=value of a comment; Key is empty for free text.
type Note struct{ Key, Value string }

// readAccount sorts out a profile's comments. "samples_" before a key may be
// left out; a key lost_X counts samples lost for the reason X.
func readAccount(comments []string) Account {
	a := Account{Taken: -1, Shown: -1, Lost: -1}
	for _, c := range comments {
		for line := range strings.Lines(c) {
			if line = strings.TrimSpace(clean(line)); line != "" {
				a.line(line)
			}
		}
	}
	slices.SortFunc(a.Reasons, func(x, y Note) int { return cmp.Compare(x.Key, y.Key) })
	return a
}

func (a *Account) line(line string) {
	key, value, ok := strings.Cut(line, "=")
	if !ok || strings.ContainsAny(key, " \t") {
		a.Notes = append(a.Notes, Note{Value: line})
		return
	}
	n, err := strconv.ParseInt(value, 10, 64)
	short := strings.TrimPrefix(key, "samples_")
	if err != nil || n < 0 {
		short = ""
	}
	switch {
	case short == "taken":
		a.Taken = n
	case short == "shown":
		a.Shown = n
	case short == "lost":
		a.Lost = n
	case strings.HasPrefix(short, "lost_"):
		a.Reasons = append(a.Reasons, Note{Key: strings.TrimPrefix(short, "lost_"), Value: value})
	default:
		a.Notes = append(a.Notes, Note{Key: key, Value: value})
	}
}

// comments is the inverse of readAccount.
func (a Account) comments() []string {
	var out []string
	for _, c := range []struct {
		key string
		n   int64
	}{{"samples_taken", a.Taken}, {"samples_shown", a.Shown}, {"samples_lost", a.Lost}} {
		if c.n >= 0 {
			out = append(out, fmt.Sprintf("%s=%d", c.key, c.n))
		}
	}
	for _, r := range a.Reasons {
		out = append(out, "lost_"+r.Key+"="+r.Value)
	}
	for _, n := range a.Notes {
		out = append(out, n.String())
	}
	return out
}

// String returns key=value, or the free text.
func (n Note) String() string {
	if n.Key == "" {
		return n.Value
	}
	return n.Key + "=" + n.Value
}

// Sentence says in words what was taken, shown and lost, and flags an
// account that does not add up.
func (a Account) Sentence() string {
	if a.Taken < 0 || a.Shown < 0 || a.Lost < 0 {
		return "The profile does not say how many samples were lost."
	}
	s := fmt.Sprintf("Samples: %s taken = %s shown + %s lost", thousands(a.Taken), thousands(a.Shown), thousands(a.Lost))
	if len(a.Reasons) > 0 {
		var parts []string
		for _, r := range a.Reasons {
			parts = append(parts, strings.ReplaceAll(r.Key, "_", " ")+" "+r.Value)
		}
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	if a.Taken != a.Shown+a.Lost {
		s += ". These numbers do not add up"
	}
	return s + "."
}
